import type { Elysia } from "elysia";
import { acceptWhatsapp } from "../intake/accept-whatsapp.ts";
import type { FrontDoor } from "./front-door.ts";
import { type SendKind, serveSend } from "./send.ts";

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
