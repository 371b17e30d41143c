// Before anything is drawn: light or dark, as the visitor or the machine says.
(() => {
  const said = localStorage.getItem("theme");
  const dark = said ? said === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
