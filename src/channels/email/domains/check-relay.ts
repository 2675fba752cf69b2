import type { DnsRecord, DomainCheckName, Finding, RegisteredDomain } from "../../../domain/domain.ts";
import type { DnsAnswer, DnsResolver } from "./dns.ts";
import { dkimProblem, dmarcProblem, hasDmarc, spfProblem } from "./record-rules.ts";
import { relayRecords, spfHost } from "./relay-records.ts";

/**
 * Checks a domain's records as a receiving mail server would: one finding per record. Takes as long as the slowest
 * look-up; the search for a parent's DMARC record stops at the first look-up that gets no answer.
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
  problemOf: (texts: readonly string[]) => string | null,
): Promise<Finding> {
  const answer = await dns.txt(name);
  if (answer.kind !== "found") return notFound(check, answer, name, "TXT");
  const problem = problemOf(answer.records);
  return problem === null ? passed(check) : failed(check, `${name} ${problem}`);
}

/**
 * Finds a record at the domain, or else at the nearest parent that has one (RFC 7489, 6.6.3, but walking up instead of
 * using a list of public suffixes). Stops before the top-level domain.
 */
async function checkDmarc(dns: DnsResolver, domain: string, { name, value }: DnsRecord): Promise<Finding> {
  const labels = domain.split(".");
  for (let first = 0; first < Math.min(labels.length - 1, PARENTS_MAX); first += 1) {
    const at = `_dmarc.${labels.slice(first).join(".")}`;
    const answer = await dns.txt(at);
    if (answer.kind === "unanswered") return { check: "dmarc", result: "unanswered", why: answer.why };
    if (answer.kind === "absent" || !hasDmarc(answer.records)) continue;
    const problem = dmarcProblem(answer.records);
    return problem === null ? passed("dmarc") : failed("dmarc", `${at} ${problem}`);
  }
  return failed("dmarc", `${name} has no DMARC record, and no parent domain has: publish ${value}`);
}

/** No domain in use is deeper; a deeper name would only cost look-ups. */
const PARENTS_MAX = 8;

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
