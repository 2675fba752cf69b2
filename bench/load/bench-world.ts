import type { Telemetry } from "../../src/domain/telemetry.ts";
import { QUEUE_SHARE, type Tenant } from "../../src/domain/tenants/tenant.ts";
import { tenantShard } from "../../src/tenants/tenant-shard.ts";

export const QUEUE_SHARDS = 16;

/**
 * The channels of the benchmarks' queues. The app's list would load every room, and loading at the start would count as
 * CPU of the process.
 */
export const QUEUE_CHANNELS = [
  { name: "email", letter: "e" },
  { name: "whatsapp", letter: "w" },
  { name: "wallet", letter: "p" },
] as const;

/** The body of every send: about 300 bytes, as in a confirmation. */
export const SEND_BODY = JSON.stringify({
  to_address: "ann.example@customer.example.com",
  to_name: "Ann Example",
  subject: "Your order 4711 is on its way",
  html: "<h1>On its way</h1><p>Hello {{.name}}, your order {{.order}} has left us and arrives {{.day}}.</p>",
  data: { name: "Ann", order: "4711", day: "on Tuesday" },
});

/** The job payload for the same send. */
export const SEND_PAYLOAD = JSON.stringify({
  to: "ann.example@customer.example.com",
  toName: "Ann Example",
  subject: "Your order 4711 is on its way",
  html: "<h1>On its way</h1><p>Hello {{.name}}, your order {{.order}} has left us and arrives {{.day}}.</p>",
  data: { name: "Ann", order: "4711", day: "on Tuesday" },
});

/**
 * A small template mail, as both sides store it, and a send that uses it: `%n%` differs from one request to the next.
 */
export const MAIL_TEMPLATE = {
  slug: "shipped",
  subject: "Your order {{.order}} is on its way",
  html:
    "<h1>On its way</h1><p>Hello {{.name}}, your order {{.order}} has left us and arrives {{.day}}.</p>" +
    "<p>Thank you for shopping with us.</p>",
  text:
    "On its way\n\nHello {{.name}}, your order {{.order}} has left us and arrives {{.day}}.\n\n" +
    "Thank you for shopping with us.",
} as const;
export const TEMPLATE_SEND_BODY = JSON.stringify({
  to_address: "ann.%n%@customer.example.com",
  to_name: "Ann Example",
  template_id: MAIL_TEMPLATE.slug,
  data: { name: "Ann", order: "47%n%", day: "on Tuesday" },
});

export function benchTenants(count: number): readonly Tenant[] {
  return Array.from({ length: count }, (_, i) => ({
    tenantId: `bench-${i}`,
    shard: tenantShard(`bench-${i}`, QUEUE_SHARDS),
    name: `Bench ${i}`,
    plan: { name: "bench", requestsPerMinute: 1_000_000_000, deliveriesPerSecond: null, ...QUEUE_SHARE },
    channels: new Set(["email"] as const),
    permissions: new Set(["allow_raw_html"] as const),
    allowCustom: new Set<never>(),
    emailTemplates: new Map(),
    emailSender: null,
    domains: new Map(),
    whatsapp: { sender: null, aliases: new Map(), templates: null },
    wallet: { apple: null, google: null, templates: new Map(), webhookUrl: null },
  }));
}

export const noTelemetry: Telemetry = { count() {}, gauge() {}, time() {}, log() {} };
