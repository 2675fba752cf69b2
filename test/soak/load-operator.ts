import type { LoadContext } from "./soak-world.ts";
import { TEMPLATE } from "./tenants.ts";

/** All processes refuse a former key within a second; the longer time covers a fault in between. */
const REVOKED_MS = 15_000;
const PAUSE_MS = 5_000;
const PLAN_CHANGED = 0.2;

/** One of the changes that operators and tenants make while messages are sent. */
export async function change(context: LoadContext): Promise<void> {
  const { dice, api, tenants, did } = context;
  const tenant = tenants.sender(dice);
  switch (dice.between(0, 6)) {
    case 0: {
      // The plan of all tenants changes a few times an hour.
      if (!dice.chance(PLAN_CHANGED)) return;
      const plan = {
        requests_per_minute: dice.pick([900_000, 1_000_000]),
        deliveries_per_second: dice.pick([null, 200]),
      };
      await api.operator("PUT", "/plans/load", plan);
      return did("plan changed");
    }
    case 1: {
      const body = {
        channel: "email",
        subject: "Hello, {{.name}}",
        html: `<p>Hello {{.name}}, {{.text}} ${dice.next()}</p>`,
      };
      await api.operator("PUT", `/tenants/${tenant.id}/templates/${TEMPLATE}`, body);
      return did("template changed");
    }
    case 2:
      return rotateKey(context);
    case 3: {
      const name = `Renamed ${dice.between(0, 1_000)}`;
      await api.operator("PATCH", `/tenants/${tenant.id}`, { name });
      return did("tenant renamed");
    }
    case 4: {
      await api.operator("POST", `/tenants/${tenant.id}/pause`, {});
      context.later(PAUSE_MS, () => resume(context, tenant.id));
      return did("tenant paused");
    }
    case 5: {
      const path = `/suppressions/${encodeURIComponent(`came-back-${dice.between(0, 50)}@example.com`)}`;
      await api.tenant(tenant.apiKey, dice.chance(0.5) ? "PUT" : "DELETE", `/v1${path}`, undefined);
      return did("suppression set or removed");
    }
    default: {
      // The load stays far below both limits.
      await api.operator("PUT", "/plans/limited", {
        requests_per_minute: 10,
        queued_jobs_max: dice.pick([500, 1_000]),
      });
      return did("limited plan changed");
    }
  }
}

/** Repeated until it is answered, or its messages would wait for ever. */
async function resume(context: LoadContext, tenantId: string): Promise<void> {
  const { status } = await context.api.operator("POST", `/tenants/${tenantId}/resume`, {});
  if (status !== 200) context.later(1_000, () => resume(context, tenantId));
}

/** A tenant receives another key and uses it from then on; the former one is revoked and refused. */
async function rotateKey(context: LoadContext): Promise<void> {
  const { dice, api, tenants, book, did } = context;
  const tenant = tenants.sender(dice);
  const made = await api.operator("POST", `/tenants/${tenant.id}/keys`, { name: "rotated" });
  if (made.status !== 201) return;
  const former = tenant.apiKey;
  tenant.apiKey = made.body.api_key;
  did("key rotated");
  const { body } = await api.operator("GET", `/tenants/${tenant.id}/keys`);
  const old = body?.keys?.find(({ prefix }: { prefix: string }) => former.startsWith(prefix));
  if (old === undefined) return;
  // Requests with the former key may still be on their way.
  context.later(REVOKED_MS, async () => {
    const revoked = await api.operator("DELETE", `/tenants/${tenant.id}/keys/${old.key_id}`);
    if (revoked.status !== 204) return;
    context.later(REVOKED_MS, async () => {
      const { status } = await api.tenant(former, "GET", "/v1/jobs?limit=1");
      if (status === 200) book.misdeed("a revoked key is refused", `key ${old.key_id} of ${tenant.id}`);
    });
  });
}
