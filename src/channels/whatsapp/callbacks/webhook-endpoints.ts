import { type TProperties, Type } from "@sinclair/typebox";
import type { Telemetry } from "../../../domain/telemetry.ts";
import { isJsonObject } from "../../../domain/texts/json.ts";
import { ApiError } from "../../../http/api-error.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import type { Exchange } from "../../../http/exchange.ts";
import { failure, WEBHOOK_TOO_SLOW } from "../../../http/failures.ts";
import type { FrontDoor } from "../../../http/front-door.ts";
import { queryText, readQueryString } from "../../../http/parameters.ts";
import { parseJson } from "../../../http/parse-json.ts";
import { chatLimits } from "../limits.ts";
import type { WhatsappPorts } from "../ports.ts";
import { readWhatsappWebhook } from "./webhook.ts";
import { WebhookGate } from "./webhook-gate.ts";

interface WebhookPorts extends WhatsappPorts {
  readonly telemetry: Telemetry;
}

const PATH = "/webhook/whatsapp";

/**
 * `/webhook/whatsapp`, called by the chat provider: GET when the address is registered with it, POST with message
 * statuses and incoming messages. Only the secrets authenticate a call: it needs no API key and counts against no rate
 * limit.
 *
 * A POST is answered 200 once everything in it is on disk, except statuses of messages that are not known yet. The
 * provider repeats calls with any other answer for days, so other answers are reserved for calls that it did not sign
 * (401), bodies that it never sends (not a JSON object: 400; longer than it sends: 413; too slow: 408), exhausted
 * memory (503), and failed writes (500). Parts of unknown form are accepted, stored and reported.
 */
export function webhookEndpoints(ports: WebhookPorts): readonly Endpoint[] {
  const gate = new WebhookGate(ports.webhookSecrets);
  const receiving: Receiving = { ...ports, gate };
  return [
    endpoint({
      method: "GET",
      path: PATH,
      name: "webhook_challenge",
      operation: "answerWhatsappChallenge",
      tag: "Chat",
      summary: "Tells the chat provider that this address is the one that it was given",
      query: {
        "hub.mode": { ...queryText("`subscribe`."), isRequired: true },
        "hub.verify_token": { ...queryText("The webhook secret."), isRequired: true },
        "hub.challenge": { ...queryText("Given back."), isRequired: true },
      },
      answers: { 200: { description: "The challenge, as it is.", schema: null, mediaType: "text/plain" } },
      fails: { 400: WEBHOOK_BAD_REQUEST, 403: WEBHOOK_FORBIDDEN },
      handle: (_door, exchange) => answerChallenge(gate, exchange),
    }),
    endpoint({
      method: "POST",
      path: PATH,
      name: "webhook",
      operation: "takeWhatsappWebhook",
      tag: "Chat",
      summary: "Takes what the chat provider reports: statuses of messages, and messages that came in",
      description:
        "Answered once what people wrote and statuses of known messages are on disk; those of messages that are not known yet " +
        "are held in memory for a moment. Safe to repeat, and repeated by the provider unless it was answered 200. " +
        "Statuses `sent`, `delivered`, `read` and `failed` become events. News of accounts and templates, and whatever has " +
        "an unknown form, are kept, and tenants' webhooks hear of them (`account.updated`, `message.unknown`).",
      security: ["webhookSignature"],
      body: { schema: WhatsappWebhook, examples: [DELIVERED] },
      answers: { 200: { description: "Recorded.", schema: WebhookReceived, examples: [{ status: "received" }] } },
      fails: {
        400: WEBHOOK_BAD_REQUEST,
        401: WEBHOOK_UNSIGNED,
        408: WEBHOOK_TOO_SLOW,
        413: WEBHOOK_TOO_LARGE,
        503: WEBHOOK_CROWDED,
      },
      handle: (door, exchange) => receiveWebhook(door, exchange, receiving),
    }),
  ];
}

/** Returns the schema of a provider's object: it lists the members that are read, all optional, and allows others. */
function given<P extends TProperties>(members: P) {
  return Type.Partial(Type.Object(members), { additionalProperties: true });
}

const WhatsappWebhook = Type.Partial(
  Type.Object({
    object: Type.String(),
    entry: Type.Array(
      given({
        id: Type.String(),
        changes: Type.Array(
          given({
            field: Type.String(),
            value: given({
              metadata: given({ phone_number_id: Type.String() }),
              contacts: Type.Array(
                given({
                  wa_id: Type.String(),
                  user_id: Type.String(),
                  profile: given({ name: Type.String(), username: Type.String() }),
                }),
              ),
              statuses: Type.Array(
                given({
                  id: Type.String(),
                  status: Type.String(),
                  biz_opaque_callback_data: Type.String(),
                  errors: Type.Array(
                    given({
                      code: Type.Integer(),
                      title: Type.String(),
                      message: Type.String(),
                      error_data: given({ details: Type.String() }),
                    }),
                  ),
                }),
              ),
              messages: Type.Array(
                given({ id: Type.String(), from: Type.String(), from_user_id: Type.String(), type: Type.String() }),
              ),
            }),
          }),
        ),
      }),
    ),
  }),
  { $id: "WhatsappWebhook", additionalProperties: true },
);

const DELIVERED = {
  object: "whatsapp_business_account",
  entry: [
    {
      id: "102290129340398",
      changes: [
        {
          field: "messages",
          value: {
            metadata: { phone_number_id: "106540352242922" },
            statuses: [{ id: "wamid.HBgNNTQ5MTEyMjMzNDQ1NRUCABIYFDNBOTk", status: "delivered" }],
          },
        },
      ],
    },
  ],
};

const WebhookReceived = Type.Object({ status: Type.Literal("received") }, { $id: "WebhookReceived" });

const UNSIGNED = "X-Hub-Signature-256 is missing, or does not fit the body and the webhook secret";
const FORBIDDEN = "hub.mode must be subscribe, and hub.verify_token the webhook secret";

const WEBHOOK_BAD_REQUEST = failure("WebhookBadRequest", "The request is malformed.", "the body must be a JSON object");
const WEBHOOK_UNSIGNED = failure(
  "WebhookUnsigned",
  "The signature is missing or does not fit the body. Nothing is stored.",
  UNSIGNED,
  { headers: ["WWW-Authenticate"] },
);
const WEBHOOK_FORBIDDEN = failure("WebhookForbidden", "The verify token is wrong.", FORBIDDEN);
const WEBHOOK_TOO_LARGE = failure(
  "WebhookTooLarge",
  "The body is larger than 3 MiB.",
  `the body is larger than ${chatLimits.webhookBodyBytesMax} bytes`,
);
const WEBHOOK_CROWDED = failure(
  "WebhookCrowded",
  "More large calls arrive at one time than there is room for.",
  "too many large calls arrive at the moment: try again",
);

function answerChallenge(gate: WebhookGate, exchange: Exchange): Response {
  const query = readQueryString(exchange.request.url);
  const isAdmitted = query.get("hub.mode") === "subscribe" && gate.knows(query.get("hub.verify_token"));
  if (!isAdmitted) throw new ApiError(403, FORBIDDEN);
  const challenge = query.get("hub.challenge");
  if (challenge === null) throw new ApiError(400, "hub.challenge is required");
  // Plain text, so that no browser renders the challenge as a page.
  return exchange.body(200, challenge, { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" });
}

interface Receiving extends WebhookPorts {
  readonly gate: WebhookGate;
}

async function receiveWebhook(door: FrontDoor, exchange: Exchange, receiving: Receiving): Promise<Response> {
  const { gate, telemetry } = receiving;
  exchange.challenge = 'Signature realm="waybill webhook", header="X-Hub-Signature-256"';
  const signature = exchange.request.headers.get("x-hub-signature-256");
  // Rejects unsigned calls before reading the body.
  if (!gate.isSignature(signature)) throw unsigned();
  const bytes = await door.bytes(exchange, chatLimits.webhookBodyBytesMax);
  if (!gate.signed(bytes, signature)) throw unsigned();
  // No bound: the provider signed it, and packs as many statuses into a call as it likes.
  const body = parseJson(bytes, Number.POSITIVE_INFINITY);
  if (!isJsonObject(body)) throw new ApiError(400, "the body must be a JSON object");

  const read = readWhatsappWebhook(body);
  if (read.ignored > 0) telemetry.count("webhook_statuses_unused", {}, read.ignored);
  await receiving.statuses.take(read.statuses);
  await receiving.incoming.take(read.messages);
  await receiving.parts.take(read);
  return exchange.jsonText(200, '{"status":"received"}');
}

function unsigned(): ApiError {
  return new ApiError(401, UNSIGNED);
}
