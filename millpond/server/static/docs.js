// The API, described and tried in the browser; a token is sent along where one is needed.
import { get, headers } from "./api.js";

// The head of an operation is a button, in which a link would be a second thing to press: it is text.
const plainHeads = () => ({
  wrapComponents: { DeepLink: (_, { React }) => ({ text }) => React.createElement("span", {}, text) },
});

const spec = await get("/openapi.json");
SwaggerUIBundle({
  spec, dom_id: "#docs", deepLinking: true, docExpansion: "list", validatorUrl: null, plugins: [plainHeads],
  defaultModelsExpandDepth: 0, supportedSubmitMethods: ["get", "put", "post", "delete", "patch"],
  requestInterceptor: (request) => { Object.assign(request.headers, headers()); return request; },
});
