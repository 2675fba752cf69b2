const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** The permanent shard of a new tenant: FNV-1a (32 bits, RFC 9923) of its id, modulo the number of shards. */
export function tenantShard(tenantId: string, shards: number): number {
  let hash = FNV_OFFSET;
  for (const byte of new TextEncoder().encode(tenantId)) hash = Math.imul(hash ^ byte, FNV_PRIME) >>> 0;
  return hash % shards;
}
