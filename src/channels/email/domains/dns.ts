/** The DNS answer for a name. */
export type DnsAnswer<T> =
  | { readonly kind: "found"; readonly records: readonly T[] }
  /** The name, or this type of record at it, does not exist (NXDOMAIN or NODATA). */
  | { readonly kind: "absent" }
  /** No usable answer: SERVFAIL, a refusal, or a time-out. The record may exist all the same. */
  | { readonly kind: "unanswered"; readonly why: string };

/** RFC 1035, 3.3.9. */
export interface MxRecord {
  /** Lower case, without the trailing dot. */
  readonly exchange: string;
  readonly priority: number;
}

/** Looks names up, following aliases. Never rejects; answers within ten seconds. */
export interface DnsResolver {
  /** Looks up TXT records, each with its strings joined (RFC 7208, 3.3), one character per byte. */
  txt(name: string): Promise<DnsAnswer<string>>;
  mx(name: string): Promise<DnsAnswer<MxRecord>>;
}
