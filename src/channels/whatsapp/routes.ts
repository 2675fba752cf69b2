import type { Elysia } from "elysia";
import type { FrontDoor } from "../../http/front-door.ts";
import { type SendKind, serveSend } from "../../http/sending/serve-send.ts";
import { acceptWhatsapp } from "./request.ts";

/** `POST /v1/send/whatsapp`. */
export function sendWhatsappRoutes(app: Elysia, door: FrontDoor): void {
  const kind: SendKind = {
    channel: "whatsapp",
    scope: "whatsapp",
    accept: (tenant, body) => acceptWhatsapp(tenant, body, door.ports.platform),
  };
  app.post("/v1/send/whatsapp", ({ request }) =>
    door.serve("send_whatsapp", request, (exchange) => serveSend(door, exchange, kind)),
  );
}
