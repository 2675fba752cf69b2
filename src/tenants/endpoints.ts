import type { ChannelName } from "../domain/job.ts";
import type { TenantDirectory } from "../domain/tenant.ts";
import type { Endpoint } from "../http/endpoint.ts";
import type { TemplateKind } from "../http/template-kind.ts";
import type { RegistryTools } from "../storage/registry.ts";
import { keyEndpoints } from "./key-endpoints.ts";
import { KeyRepository } from "./key-repository.ts";
import { planEndpoints } from "./plan-endpoints.ts";
import { PlanRepository } from "./plan-repository.ts";
import type { TenantRegistry } from "./registry.ts";
import { type Purging, steeringEndpoints } from "./steering-endpoints.ts";
import { suppressionEndpoints } from "./suppression-endpoints.ts";
import type { SuppressionList } from "./suppression-list.ts";
import { SuppressionRepository } from "./suppression-repository.ts";
import { templateEndpoints } from "./template-endpoints.ts";
import { TemplateRepository } from "./template-repository.ts";
import { tenantEndpoints, tenantOf } from "./tenant-endpoints.ts";
import { TenantRepository } from "./tenant-repository.ts";
import { tokenEndpoints } from "./token-endpoints.ts";
import { TokenRepository } from "./token-repository.ts";

interface EndpointPorts {
  readonly registry: TenantRegistry;
  readonly suppressions: Pick<SuppressionList, "put" | "remove" | "page">;
  readonly purging: Purging;
  readonly directory: Pick<TenantDirectory, "byId">;
}

/** What the room has to know of the channels. */
interface Channels {
  readonly channels: readonly ChannelName[];
  readonly kinds: readonly TemplateKind[];
}

/** All endpoints of the room. */
export function tenantRoomEndpoints(ports: EndpointPorts, { channels, kinds }: Channels): readonly Endpoint[] {
  const Tenant = tenantOf(channels);
  return [
    ...tenantEndpoints(ports, Tenant, channels),
    ...steeringEndpoints(ports, Tenant, channels),
    ...keyEndpoints(ports),
    ...templateEndpoints(ports, kinds),
    ...tokenEndpoints(ports),
    ...suppressionEndpoints(ports),
    ...planEndpoints(ports),
  ];
}

/** The room's part of the registry. */
export function tenantRegistry(
  tools: RegistryTools,
  { channels, kinds, shards }: Channels & { readonly shards: number },
): TenantRegistry {
  const { database, changes, clock } = tools;
  const tenants = new TenantRepository({ ...tools, shards, channels });
  const keys = new KeyRepository(tools);
  const allPlans = new PlanRepository(database, changes);
  const templates = new TemplateRepository({ database, changes, kinds });
  const tokens = new TokenRepository(database, clock);
  const suppressed = new SuppressionRepository(database, clock);
  return {
    createTenant: (tenant) => tenants.create(tenant),
    tenant: (tenantId) => tenants.one(tenantId),
    tenants: (cursor, limit) => tenants.page(cursor, limit),
    changeTenant: (tenantId, change) => tenants.change(tenantId, change),
    steerTenant: (tenantId, steer, steered) => tenants.steer(tenantId, steer, steered),
    createKey: (tenantId) => keys.create(tenantId),
    keys: (tenantId) => keys.all(tenantId),
    revokeKey: (tenantId, keyId) => keys.revoke(tenantId, keyId),
    plans: () => allPlans.all(),
    putPlan: (plan) => allPlans.put(plan),
    putTemplate: (tenantId, template) => templates.put(tenantId, template),
    template: (tenantId, slug) => templates.one(tenantId, slug),
    templates: (tenantId) => templates.all(tenantId),
    deleteTemplate: (tenantId, slug) => templates.delete(tenantId, slug),
    putWalletWebhook: (tenantId, url) => tenants.putWalletWebhook(tenantId, url),
    addTokens: (tenantId, amount, reason) => tokens.add(tenantId, amount, reason),
    tokenMovements: (tenantId, cursor, limit) => tokens.movements(tenantId, cursor, limit),
    putSuppression: (tenantId, address, reason) => suppressed.put(tenantId, address, reason),
    deleteSuppression: (tenantId, address) => suppressed.delete(tenantId, address),
    suppressionReason: (tenantId, address) => suppressed.reason(tenantId, address),
    suppressions: (tenantId, cursor, limit) => suppressed.page(tenantId, cursor, limit),
    suppressionsOfShard: (shard, after) => suppressed.ofShard(shard, after),
  };
}

declare module "../storage/registry.ts" {
  interface Registry extends TenantRegistry {}
}
