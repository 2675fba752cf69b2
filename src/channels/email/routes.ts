import type { Elysia } from "elysia";
import type { FrontDoor } from "../../http/front-door.ts";
import { type SendKind, serveSend } from "../../http/sending/serve-send.ts";
import { acceptEmail } from "./request.ts";

const EMAIL: SendKind = { channel: "email", scope: "email", accept: acceptEmail };

/** `POST /v1/send/email`. */
export function sendEmailRoutes(app: Elysia, door: FrontDoor): void {
  app.post("/v1/send/email", ({ request }) =>
    door.serve("send_email", request, (exchange) => serveSend(door, exchange, EMAIL)),
  );
}
