import type { JsonObject } from "../../../domain/json.ts";
import { emptyAnswer, errors, pathParameter, textAnswer } from "../../../http/openapi/answers.ts";

const token = pathParameter("token", "The signed token of a link in a message.", "vhkzlDfNYsGDYPJ4");

function operation(operationId: string, summary: string, responses: JsonObject): JsonObject {
  return { operationId, tags: ["Public links"], summary, security: [], parameters: [token], responses };
}

const FORM: JsonObject = {
  type: "object",
  properties: { "List-Unsubscribe": { type: "string", const: "One-Click" } },
};
const UNKNOWN = { "404": "NoSuchLink", "500": "PublicInternalError" } as const;

/** What the links in messages lead to. Tokens alone decide; no key is asked for and no rate window counts. */
export const publicPaths: JsonObject = {
  "/t/o/{token}.gif": {
    get: operation("trackOpen", "The tracking pixel: always the same picture, for an unknown token, too", {
      "200": textAnswer("A transparent GIF of one pixel, never cached.", "image/gif"),
    }),
  },
  "/t/c/{token}": {
    get: operation("trackClick", "Leads to the address that the token carries", {
      "302": emptyAnswer("The way there, in `Location`."),
      ...errors({ "404": "NoSuchLink" }),
    }),
  },
  "/u/{token}": {
    get: operation("askUnsubscribe", "A page that asks whether to unsubscribe", {
      "200": textAnswer("The page.", "text/html"),
      ...errors(UNKNOWN),
    }),
    post: {
      ...operation("unsubscribe", "Unsubscribes the recipient (RFC 8058), as often as it is called", {
        "200": textAnswer("A page that says so.", "text/html"),
        ...errors(UNKNOWN),
      }),
      requestBody: {
        required: false,
        content: { "application/x-www-form-urlencoded": { schema: FORM }, "multipart/form-data": { schema: FORM } },
      },
    },
  },
};
