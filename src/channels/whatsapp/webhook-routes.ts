import type { Elysia } from "elysia";
import { ApiError } from "../../domain/errors.ts";
import { isJsonObject } from "../../domain/json.ts";
import { limits } from "../../domain/limits.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { parseJson } from "../../http/request-body.ts";
import { readWhatsappWebhook } from "./webhook.ts";
import { WebhookGate } from "./webhook-gate.ts";

/**
 * `/webhook/whatsapp`, which the chat provider calls: GET when the address is registered with it, POST with what became of
 * messages and with messages that came in. The secrets alone decide; no key is asked for and no rate window counts.
 *
 * A POST is answered 200 once everything in it is on disk. The provider repeats for days what is answered otherwise, so
 * only these are: what it did not sign (401), what it never sends (no JSON object: 400; longer than it sends: 413), what
 * there is no room for (503), and what could not be written down (500). Parts of another form are accepted and counted.
 */
export function whatsappWebhookRoutes(app: Elysia, door: FrontDoor): void {
  const gate = new WebhookGate(door.ports.whatsapp.webhookSecrets);
  const challenge = (exchange: Exchange) => answerChallenge(gate, exchange);
  const receive = (exchange: Exchange) => receiveWebhook(door, gate, exchange);
  app.get("/webhook/whatsapp", ({ request }) => door.serve("webhook_challenge", request, challenge));
  app.post("/webhook/whatsapp", ({ request }) => door.serve("webhook", request, receive));
}

function answerChallenge(gate: WebhookGate, exchange: Exchange): Response {
  const query = new URL(exchange.request.url).searchParams;
  const isAdmitted = query.get("hub.mode") === "subscribe" && gate.knows(query.get("hub.verify_token"));
  if (!isAdmitted) throw new ApiError(403, "hub.mode must be subscribe, and hub.verify_token the webhook secret");
  const challenge = query.get("hub.challenge");
  if (challenge === null) throw new ApiError(400, "hub.challenge is required");
  // Whatever it says, nobody takes it for a page.
  return exchange.body(200, challenge, { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" });
}

async function receiveWebhook(door: FrontDoor, gate: WebhookGate, exchange: Exchange): Promise<Response> {
  exchange.challenge = 'Signature realm="waybill webhook", header="X-Hub-Signature-256"';
  const signature = exchange.request.headers.get("x-hub-signature-256");
  // A stranger's body is not even read.
  if (!gate.isSignature(signature)) throw unsigned();
  const bytes = await door.bytes(exchange, limits.webhookBodyBytesMax);
  if (!gate.signed(bytes, signature)) throw unsigned();
  // Signed by the provider, which packs as many statuses into a call as it likes.
  const body = parseJson(bytes, Number.POSITIVE_INFINITY);
  if (!isJsonObject(body)) throw new ApiError(400, "the body must be a JSON object");

  const { statuses, messages, ignored, misshapen } = readWhatsappWebhook(body);
  const { whatsapp, telemetry } = door.ports;
  if (ignored > 0) telemetry.count("webhook_parts_skipped", { why: "ignored" }, ignored);
  if (misshapen > 0) telemetry.count("webhook_parts_skipped", { why: "misshapen" }, misshapen);
  await whatsapp.statuses.take(statuses);
  if (messages.length > 0) {
    const fresh = await whatsapp.messages.record(messages);
    telemetry.count("incoming_messages", { result: "recorded" }, fresh);
    telemetry.count("incoming_messages", { result: "duplicate" }, messages.length - fresh);
  }
  return exchange.jsonText(200, '{"status":"received"}');
}

function unsigned(): ApiError {
  return new ApiError(401, "X-Hub-Signature-256 is missing, or does not fit the body and the webhook secret");
}
