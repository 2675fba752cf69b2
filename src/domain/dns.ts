/** What the name system says of a name. */
export type DnsAnswer<T> =
  | { readonly kind: "found"; readonly records: readonly T[] }
  /** The name, or this type of record at it, does not exist (NXDOMAIN or NODATA). */
  | { readonly kind: "absent" }
  /** Nobody could say: SERVFAIL, a refusal, no answer in time. It may exist all the same. */
  | { readonly kind: "unanswered"; readonly why: string };

/** RFC 1035, 3.3.9. */
export interface MxRecord {
  /** Lower case, without the dot at its end. */
  readonly exchange: string;
  readonly priority: number;
}

/** Looks names up, following aliases. Never rejects; answers within ten seconds. */
export interface DnsResolver {
  /** Each record's strings joined (RFC 7208, 3.3), one character a byte. */
  txt(name: string): Promise<DnsAnswer<string>>;
  mx(name: string): Promise<DnsAnswer<MxRecord>>;
}
