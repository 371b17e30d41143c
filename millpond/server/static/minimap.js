// A small picture of the whole plan with a frame around what is seen; dragging moves it.
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const MARGIN = 6;

export class Minimap {
  constructor(canvas, graph) {
    Object.assign(this, { canvas, graph });
    graph.on("render", () => this.soon());
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); this.move(event); });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) this.move(event); });
  }

  soon() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = null; this.draw(); });
  }

  // How the plan is laid into the picture; nothing if all of it is seen anyway.
  frame() {
    const whole = this.graph.elements().boundingBox({ includeLabels: false }), seen = this.graph.extent();
    const isAll = seen.x1 <= whole.x1 && seen.x2 >= whole.x2 && seen.y1 <= whole.y1 && seen.y2 >= whole.y2;
    if (!whole.w || isAll) return null;
    const { clientWidth: wide, clientHeight: high } = this.canvas;
    const scale = Math.min((wide - 2 * MARGIN) / whole.w, (high - 2 * MARGIN) / whole.h);
    return { scale, x: (wide - scale * whole.w) / 2 - scale * whole.x1, y: (high - scale * whole.h) / 2 - scale * whole.y1, seen };
  }

  draw() {
    this.canvas.style.visibility = "visible";
    const frame = this.frame();
    this.canvas.style.visibility = frame ? "visible" : "hidden";
    if (!frame) return;
    const ratio = devicePixelRatio, context = this.canvas.getContext("2d");
    this.canvas.width = this.canvas.clientWidth * ratio;
    this.canvas.height = this.canvas.clientHeight * ratio;
    context.setTransform(ratio * frame.scale, 0, 0, ratio * frame.scale, ratio * frame.x, ratio * frame.y);
    this.graph.nodes("[kind]").forEach((node) => {
      const { x, y } = node.position();
      context.fillStyle = node.hasClass("found") ? css("--accent") : node.data("colour") ?? css("--quiet");
      const least = 2 / frame.scale;
      const width = Math.max(node.width(), least), height = Math.max(node.height(), least);
      context.fillRect(x - width / 2, y - height / 2, width, height);
    });
    context.strokeStyle = css("--accent");
    context.lineWidth = 2 / frame.scale;
    context.strokeRect(frame.seen.x1, frame.seen.y1, frame.seen.w, frame.seen.h);
  }

  move(event) {
    const frame = this.frame();
    if (!frame) return;
    const box = this.canvas.getBoundingClientRect(), zoom = this.graph.zoom();
    const x = (event.clientX - box.left - frame.x) / frame.scale, y = (event.clientY - box.top - frame.y) / frame.scale;
    this.graph.pan({ x: this.graph.width() / 2 - zoom * x, y: this.graph.height() / 2 - zoom * y });
  }
}
