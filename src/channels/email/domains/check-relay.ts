import type { DnsRecord, DomainCheckName, Finding, RegisteredDomain } from "../../../domain/channels/domain.ts";
import type { DnsAnswer, DnsResolver } from "./dns.ts";
import { type DmarcRecord, dkimProblem, dmarcProblem, dmarcRecord, spfProblem } from "./record-rules.ts";
import { relayRecords, spfHost } from "./relay-records.ts";

/**
 * Checks a domain's records as a receiving mail server would: one finding per record. Takes as long as the slowest
 * lookup, or as the walk to the DMARC record that applies, which ends at the first lookup without an answer.
 */
export async function checkRelay(
  domain: RegisteredDomain,
  dns: DnsResolver,
  mailHost: string,
): Promise<readonly Finding[]> {
  const records = relayRecords(domain, mailHost);
  return Promise.all([
    checkReturnPath(dns, records.returnPath),
    checkTxt(dns, "spf", records.spf, (texts) => spfProblem(texts, spfHost(mailHost))),
    checkTxt(dns, "dkim", records.dkim, (texts) => dkimProblem(texts, domain.publicKey)),
    checkDmarc(dns, domain.domain, records.dmarc),
  ]);
}

async function checkReturnPath(dns: DnsResolver, { name, value }: DnsRecord): Promise<Finding> {
  const answer = await dns.mx(name);
  if (answer.kind !== "found") return notFound("return_path", answer, name, "MX");
  const exchanges = answer.records.map(({ exchange }) => exchange);
  if (exchanges.includes(value.toLowerCase())) return passed("return_path");
  return failed("return_path", `${name} has no MX record for ${value}; found: ${exchanges.slice(0, 5).join(", ")}`);
}

async function checkTxt(
  dns: DnsResolver,
  check: DomainCheckName,
  { name }: DnsRecord,
  findProblem: (texts: readonly string[]) => string | null,
): Promise<Finding> {
  const answer = await dns.txt(name);
  if (answer.kind !== "found") return notFound(check, answer, name, "TXT");
  const problem = findProblem(answer.records);
  return problem === null ? passed(check) : failed(check, `${name} ${problem}`);
}

/**
 * Finds the record that receivers apply (RFC 9989, 4.10.1): the domain's own, else its organization's, else that of the
 * public suffix above it. A walk that was interrupted by a lookup without an answer gives no verdict.
 */
async function checkDmarc(dns: DnsResolver, domain: string, { name, value }: DnsRecord): Promise<Finding> {
  const own = await dmarcAt(dns, domain);
  if (own.kind === "record") return judged(own);
  const above = own.kind === "unanswered" ? own : await organizationRecord(dns, listParentDomains(domain));
  if (above.kind === "record") return judged(above);
  if (above.kind === "unanswered") return { check: "dmarc", result: "unanswered", why: above.why };
  const ambiguous = [own, above].find(({ kind }) => kind === "many");
  if (ambiguous?.kind === "many") {
    return failed("dmarc", `${ambiguous.at} has more than one DMARC record, so that none of them counts`);
  }
  return failed("dmarc", `${name} has no DMARC record, and no parent domain has: publish ${value}`);
}

type DmarcAnswer =
  | { readonly kind: "record"; readonly at: string; readonly record: DmarcRecord }
  | { readonly kind: "many"; readonly at: string }
  | { readonly kind: "absent" }
  | { readonly kind: "unanswered"; readonly why: string };

async function dmarcAt(dns: DnsResolver, domain: string): Promise<DmarcAnswer> {
  const at = `_dmarc.${domain}`;
  const answer = await dns.txt(at);
  if (answer.kind !== "found") return answer;
  const record = dmarcRecord(answer.records);
  if (record === null) return { kind: "absent" };
  return record === "many" ? { kind: "many", at } : { kind: "record", at, record };
}

/**
 * Walks up the tree (RFC 9989, 4.10 and 4.10.2). An organization begins where a record says so (`psd=n`) or right below
 * a public suffix (`psd=y`), whose record stands in for it; otherwise at the shortest name that has a record.
 */
async function organizationRecord(dns: DnsResolver, parents: readonly string[]): Promise<DmarcAnswer> {
  let shortest: DmarcAnswer = { kind: "absent" };
  let below: DmarcAnswer = shortest;
  for (const parent of parents) {
    // One after the other, because most walks end early; there are seven at most.
    const answer = await dmarcAt(dns, parent);
    if (answer.kind === "unanswered") return answer;
    if (answer.kind === "record" && answer.record.psd === "n") return answer;
    if (answer.kind === "record" && answer.record.psd === "y") return below.kind === "record" ? below : answer;
    if (answer.kind === "record" || shortest.kind !== "record") {
      shortest = answer.kind === "absent" ? shortest : answer;
    }
    below = answer;
  }
  return shortest;
}

/** Lists the names above a domain, from the longest to the top-level domain. A deep domain's walk skips some of them. */
function listParentDomains(domain: string): readonly string[] {
  const labels = domain.split(".").slice(1).slice(-WALKED_LABELS_MAX);
  return labels.map((_, first) => labels.slice(first).join("."));
}

/** RFC 9989, 4.10: with the domain itself, eight lookups at most. */
const WALKED_LABELS_MAX = 7;

function judged({ at, record }: Extract<DmarcAnswer, { kind: "record" }>): Finding {
  const problem = dmarcProblem(record);
  return problem === null ? passed("dmarc") : failed("dmarc", `${at} ${problem}`);
}

function notFound(
  check: DomainCheckName,
  answer: Exclude<DnsAnswer<never>, { kind: "found" }>,
  name: string,
  type: string,
): Finding {
  if (answer.kind === "unanswered") return { check, result: "unanswered", why: answer.why };
  return failed(check, `${name} has no ${type} record`);
}

function passed(check: DomainCheckName): Finding {
  return { check, result: "passed", why: null };
}

function failed(check: DomainCheckName, why: string): Finding {
  return { check, result: "failed", why };
}
