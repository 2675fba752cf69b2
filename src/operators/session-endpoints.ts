import { Type } from "@sinclair/typebox";
import { OPERATOR_ROLES } from "../domain/tenants/operator.ts";
import { type Endpoint, endpoint, operatorEndpoint, reply } from "../http/endpoint.ts";
import type { Exchange } from "../http/exchange.ts";
import {
  failure,
  OPERATOR_BAD_REQUEST,
  OPERATOR_BODIES_CROWDED,
  OPERATOR_INTERNAL_ERROR,
  OPERATOR_TOO_LARGE,
  OPERATOR_TOO_SLOW,
  OPERATOR_UNKNOWN,
  OPERATOR_UNKNOWN_ENCODING,
} from "../http/failures.ts";
import type { FrontDoor } from "../http/front-door.ts";
import { OperatorBody } from "../http/operator-body.ts";
import { refuseOtherPages, sessionCookie } from "../http/operator-sessions.ts";
import type { BodyBounds } from "../http/request-body.ts";
import { enumSchema } from "../http/schemas.ts";

const PATH = "/dash/api/session";
const COMMON = { name: "session", path: PATH, tag: "Operators" } as const;

const signInBody = Type.Object(
  { token: Type.String({ minLength: 1, maxLength: 500, description: "an operator's token" }) },
  { additionalProperties: false, examples: [{ token: "wbo_a1b2c3" }] },
);

/** The body comes from unauthenticated callers. */
const SIGN_IN: BodyBounds = { bytesMax: 4 * 1024, valuesMax: 10 };

const FOREIGN_PAGE = failure(
  "ForeignPage",
  "A page of another site made the call, or the header X-Waybill-Dashboard is missing.",
  "a session serves the dashboard's own pages alone: this call came from elsewhere",
);

const Session = Type.Object(
  { name: Type.String({ description: "The operator's." }), role: enumSchema(OPERATOR_ROLES) },
  { $id: "Session" },
);

/** `/dash/api/session`: how a browser signs in, and out. */
export function sessionEndpoints(): readonly Endpoint[] {
  return [signInEndpoint(), whoEndpoint(), signOutEndpoint()];
}

function signInEndpoint(): Endpoint {
  const body = new OperatorBody(signInBody);
  return endpoint({
    ...COMMON,
    method: "POST",
    operation: "signIn",
    summary: "Begin a session in a browser",
    description:
      "The session is a cookie for `/dash`, which takes the token's place for 12 hours. It ends at once when the operator is " +
      "deleted. With the cookie, calls other than GET also need the header `X-Waybill-Dashboard: 1`.",
    security: [],
    body: { schema: body.documented },
    answers: {
      204: {
        description: "The session began.",
        schema: null,
        headers: { "Set-Cookie": "The session: `HttpOnly`, `SameSite=Strict`, over TLS also `Secure`." },
      },
    },
    fails: {
      400: OPERATOR_BAD_REQUEST,
      401: OPERATOR_UNKNOWN,
      403: FOREIGN_PAGE,
      408: OPERATOR_TOO_SLOW,
      413: OPERATOR_TOO_LARGE,
      415: OPERATOR_UNKNOWN_ENCODING,
      500: OPERATOR_INTERNAL_ERROR,
      503: OPERATOR_BODIES_CROWDED,
    },
    async handle(door, exchange) {
      // Another site must not sign a person in as somebody else.
      refuseOtherPages(exchange.request, door.ports.publicUrl);
      const { token } = await body.read(door, exchange, SIGN_IN);
      const { operator, session } = door.signIn(exchange, token.trim());
      door.ports.telemetry.log("info", "an operator signed in", { operator: operator.name });
      return reply(204, null, { "set-cookie": sessionCookie(session, isSecure(door, exchange)), ...UNCACHED });
    },
  });
}

function whoEndpoint(): Endpoint {
  return operatorEndpoint({
    ...COMMON,
    method: "GET",
    operation: "getSession",
    summary: "Show the calling operator",
    answers: { 200: { description: "The operator.", schema: Session, examples: [{ name: "ann", role: "write" }] } },
    async handle({ exchange: { operator } }) {
      if (operator === null) throw new Error("an operator's call has no operator");
      return reply(200, { name: operator.name, role: operator.role });
    },
  });
}

function signOutEndpoint(): Endpoint {
  return operatorEndpoint({
    ...COMMON,
    method: "DELETE",
    operation: "signOut",
    summary: "End the session in this browser",
    // It only affects the browser, so read-only operators may do it too.
    effect: "read",
    answers: {
      204: {
        description: "The browser has forgotten it.",
        schema: null,
        headers: { "Set-Cookie": "Takes the session back." },
      },
    },
    fails: { 403: FOREIGN_PAGE },
    async handle({ door, exchange }) {
      return reply(204, null, { "set-cookie": sessionCookie(null, isSecure(door, exchange)), ...UNCACHED });
    },
  });
}

const UNCACHED = { "cache-control": "no-store" } as const;

/**
 * Whether the browser connected by TLS, according to the page's origin, a proxy, or the public address, which does not apply to
 * a separate listener for operators.
 */
function isSecure({ ports: { publicUrl, isAdminApart } }: FrontDoor, { request: { headers } }: Exchange): boolean {
  const isTls = (text: string | null | undefined): boolean => text?.trim().toLowerCase().startsWith("https") === true;
  if (isTls(headers.get("origin")) || isTls(headers.get("x-forwarded-proto"))) return true;
  return isAdminApart !== true && isTls(publicUrl);
}
