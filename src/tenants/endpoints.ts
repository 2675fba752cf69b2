import type { ChannelName } from "../domain/jobs/job.ts";
import type { TenantQueueRemoval } from "../domain/tenants/erasure.ts";
import type { TenantDirectory } from "../domain/tenants/tenant.ts";
import type { CredentialKind } from "../http/credential-kind.ts";
import type { Endpoint } from "../http/endpoint.ts";
import type { TemplateKind } from "../http/template-kind.ts";
import type { RegistryTools } from "../storage/registry.ts";
import { AttentionRepository } from "./attention-repository.ts";
import { CredentialRepository } from "./credential-repository.ts";
import { credentialEndpoints } from "./endpoints/credential-endpoints.ts";
import { deletionEndpoint } from "./endpoints/deletion-endpoint.ts";
import { erasureEndpoint } from "./endpoints/erasure-endpoint.ts";
import { keyEndpoints } from "./endpoints/key-endpoints.ts";
import { planEndpoints } from "./endpoints/plan-endpoints.ts";
import { type ReputationPorts, reputationEndpoints } from "./endpoints/reputation-endpoints.ts";
import { type Purging, steeringEndpoints } from "./endpoints/steering-endpoints.ts";
import { suppressionEndpoints } from "./endpoints/suppression-endpoints.ts";
import { templateEndpoints } from "./endpoints/template-endpoints.ts";
import { tenantEndpoints, tenantSchema } from "./endpoints/tenant-endpoints.ts";
import { tokenEndpoints } from "./endpoints/token-endpoints.ts";
import { type UsagePorts, usageEndpoints } from "./endpoints/usage-endpoints.ts";
import type { ErasurePorts } from "./erasure.ts";
import { ExpiringRepository } from "./expiring-repository.ts";
import { KeyRepository } from "./key-repository.ts";
import { LeavingTenants } from "./leaving-tenants.ts";
import { PlanRepository } from "./plan-repository.ts";
import type { TenantRegistry } from "./registry.ts";
import { createReputations } from "./reputation-repository.ts";
import type { SuppressionList } from "./suppression-list.ts";
import { SuppressionRepository } from "./suppression-repository.ts";
import { TemplateRepository } from "./template-repository.ts";
import { TenantRepository } from "./tenant-repository.ts";
import { TokenRepository } from "./token-repository.ts";
import { UsageRepository } from "./usage-repository.ts";

interface EndpointPorts extends Omit<ErasurePorts, "suppressions" | "queue">, Omit<ReputationPorts, "registry"> {
  readonly queue: ErasurePorts["queue"] & Pick<TenantQueueRemoval, "unfinishedJobs">;
  readonly eventStore: UsagePorts["eventStore"];
  readonly registry: TenantRegistry;
  readonly suppressions: Pick<SuppressionList, "put" | "putOwn" | "remove" | "page" | "erase">;
  readonly purging: Purging;
  readonly directory: Pick<TenantDirectory, "byId">;
}

/** The channels' parts that tenant endpoints need. */
interface Channels {
  readonly channels: readonly ChannelName[];
  readonly kinds: readonly TemplateKind[];
  readonly credentialKinds: readonly CredentialKind[];
}

/** Returns all tenant endpoints. */
export function tenantRoomEndpoints(
  ports: EndpointPorts,
  { channels, kinds, credentialKinds }: Channels,
): readonly Endpoint[] {
  const Tenant = tenantSchema(channels);
  return [
    ...tenantEndpoints(ports, Tenant, channels),
    ...steeringEndpoints(ports, Tenant, channels),
    ...reputationEndpoints(ports),
    ...keyEndpoints(ports),
    ...templateEndpoints(ports, kinds),
    ...credentialEndpoints(ports, credentialKinds),
    ...tokenEndpoints(ports),
    ...usageEndpoints(ports, channels),
    ...suppressionEndpoints(ports),
    erasureEndpoint(ports),
    deletionEndpoint(ports),
    ...planEndpoints(ports),
  ];
}

/** Builds the tenants' part of the registry. */
export function tenantRegistry(
  tools: RegistryTools,
  { channels, kinds, credentialKinds, shards }: Channels & { readonly shards: number },
): TenantRegistry {
  const { database, changes, recipients, clock } = tools;
  const tenants = new TenantRepository({ ...tools, shards, channels });
  const leaving = new LeavingTenants(tools);
  const keys = new KeyRepository(tools);
  const allPlans = new PlanRepository(database, changes);
  const templates = new TemplateRepository({ database, changes, kinds });
  const own = new CredentialRepository({ ...tools, kinds: credentialKinds });
  const ends = new ExpiringRepository({ ...tools, kinds: credentialKinds });
  const tokens = new TokenRepository(database, clock);
  const usage = new UsageRepository(database);
  const suppressed = new SuppressionRepository(database, recipients, clock);
  return {
    createTenant: (tenant) => tenants.create(tenant),
    tenant: (tenantId, which) => tenants.one(tenantId, which),
    tenants: (cursor, limit, which, filter) => tenants.page(cursor, limit, which, filter),
    deleteTenant: (tenantId) => leaving.delete(tenantId),
    leavingTenant: (tenantId) => leaving.one(tenantId),
    leavingTenants: (limit) => leaving.all(limit),
    removeOfTenant: (tenantId) => leaving.removePiece(tenantId),
    tenantRemoved: (tenantId) => leaving.removed(tenantId),
    changeTenant: (tenantId, change) => tenants.change(tenantId, change),
    createKey: (tenantId, options) => keys.create(tenantId, options),
    createOwnKey: (tenantId, options) => keys.createOwn(tenantId, options),
    steerTenant: (tenantId, steer, steered) => tenants.steer(tenantId, steer, steered),
    ...createReputations(tools),
    keys: (tenantId) => keys.all(tenantId),
    attention: () => new AttentionRepository(database, clock).read(),
    revokeKey: (tenantId, keyId, options) => keys.revoke(tenantId, keyId, options),
    plans: () => allPlans.all(),
    planUse: () => allPlans.use(),
    putPlan: (plan) => allPlans.put(plan),
    putTemplate: (tenantId, template) => templates.put(tenantId, template),
    putOwnTemplate: (tenantId, template) => templates.putOwn(tenantId, template),
    template: (tenantId, slug) => templates.one(tenantId, slug),
    templates: (tenantId) => templates.all(tenantId),
    deleteTemplate: (tenantId, slug) => templates.delete(tenantId, slug),
    credentials: (tenantId) => own.all(tenantId),
    findCredentials: (tenantId, kind) => own.one(tenantId, kind),
    deleteCredentials: (tenantId, kind) => own.delete(tenantId, kind),
    putWalletWebhook: (tenantId, url) => tenants.putWalletWebhook(tenantId, url),
    addTokens: (tenantId, amount, reason) => tokens.add(tenantId, amount, reason),
    tokenMovements: (tenantId, cursor, limit) => tokens.movements(tenantId, cursor, limit),
    tenantCount: () => ends.tenantCount(),
    expiring: (before) => ends.expiring(before),
    addUsage: (counts) => usage.add(counts),
    usageCounts: (query) => usage.counts(query),
    tokenUsage: (query) => usage.tokens(query),
    putSuppression: (tenantId, address, reason) => suppressed.put(tenantId, address, reason),
    putOwnSuppression: (tenantId, address, reason) => suppressed.putOwn(tenantId, address, reason),
    deleteSuppression: (tenantId, address, reason) => suppressed.delete(tenantId, address, reason),
    eraseSuppression: (tenantId, address, isAdded) => suppressed.erase(tenantId, address, isAdded),
    suppressionReason: (tenantId, address) => suppressed.reason(tenantId, address),
    suppressions: (...asked) => suppressed.page(...asked),
    suppressionsOfShard: (shard, after) => suppressed.ofShard(shard, after),
  };
}

declare module "../storage/registry.ts" {
  interface Registry extends TenantRegistry {}
}
