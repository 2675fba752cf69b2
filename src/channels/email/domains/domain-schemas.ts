import { type Static, Type } from "@sinclair/typebox";
import { DOMAIN_CHECKS, type DomainStatus } from "../../../domain/channels/domain.ts";
import { pathText } from "../../../http/parameters.ts";
import { enumSchema, listSchema, Timestamp } from "../../../http/schemas.ts";

/** An invalid domain name gets 404, like a domain that does not exist. */
export const domainParameter = pathText("The domain's name.", "mail.acme.example");

/** Body of `POST /dash/api/tenants/{id}/domains`. */
export const domainBody = Type.Object(
  {
    domain: Type.String({ maxLength: 253, description: "a domain name, such as mail.example.com" }),
    relay_enabled: Type.Optional(Type.Boolean({ description: "true or false, by default true" })),
    smtp_enabled: Type.Optional(Type.Boolean({ description: "true or false, by default false" })),
  },
  { additionalProperties: false, examples: [{ domain: "mail.acme.example" }] },
);

const Status = enumSchema<DomainStatus>(
  ["pending", "verified", "failed"],
  "Pending: not verified yet. Failed: the last verification found something wrong. Changes by verification alone.",
);

const DnsRecord = Type.Object({
  type: enumSchema(["MX", "TXT"]),
  name: Type.String(),
  value: Type.String({
    description: "One text. Where a zone takes at most 255 bytes a string, it is split into several.",
  }),
  priority: Type.Optional(Type.Integer({ description: "MX only." })),
});

/** The tenant's view of a domain. */
export const Domain = Type.Object(
  {
    Domain: Type.String(),
    RelayEnabled: Type.Boolean({ description: "Mail of this domain goes out through the platform's relay." }),
    RelayStatus: Status,
    SMTPEnabled: Type.Boolean({ description: "Mail of this domain goes out through the tenant's own relay." }),
    SMTPStatus: Status,
    DNSRecords: Type.Object({
      relay: Type.Array(DnsRecord, {
        description: "To be published in the domain's DNS: return path (MX), SPF, DKIM and DMARC.",
      }),
    }),
  },
  { $id: "Domain" },
);

export const DomainList = listSchema("DomainList", "domains", Domain);

const Check = Type.Object({
  check: enumSchema(DOMAIN_CHECKS),
  result: enumSchema(
    ["passed", "failed", "unanswered"],
    "Unanswered: the check had no answer at that moment, which changes no status.",
  ),
  why: Type.Union([Type.String(), Type.Null()], { description: "One sentence; null where it passed." }),
});

/** The operators' view of a domain, with the findings of its last verification. */
export const OperatorDomain = Type.Intersect(
  [
    Domain,
    Type.Object({
      created_at: Timestamp,
      checked_at: Type.Union([Timestamp, Type.Null()], { description: "The last verification." }),
      checks: Type.Array(Check, { description: "Its findings, record by record." }),
    }),
  ],
  { $id: "OperatorDomain" },
);

export const OperatorDomainList = listSchema("OperatorDomainList", "domains", OperatorDomain);

export const DOMAIN_EXAMPLE = {
  Domain: "mail.acme.example",
  RelayEnabled: true,
  RelayStatus: "verified",
  SMTPEnabled: false,
  SMTPStatus: "pending",
  DNSRecords: {
    relay: [
      { type: "MX", name: "bounce.mail.acme.example", value: "mx.example.com", priority: 10 },
      { type: "TXT", name: "bounce.mail.acme.example", value: "v=spf1 include:spf.mx.example.com ~all" },
      {
        type: "TXT",
        name: "wb1f0c77a2._domainkey.mail.acme.example",
        value: "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0B…",
      },
      { type: "TXT", name: "_dmarc.mail.acme.example", value: "v=DMARC1; p=none" },
    ],
  },
} satisfies Static<typeof Domain>;

/** The SPF record is missing, and the lookup of the DMARC record got no answer. */
export const FAILED_EXAMPLE = {
  ...DOMAIN_EXAMPLE,
  RelayStatus: "failed",
  created_at: "2026-11-21T07:30:00Z",
  checked_at: "2026-11-21T08:00:00Z",
  checks: [
    { check: "return_path", result: "passed", why: null },
    { check: "spf", result: "failed", why: "bounce.mail.acme.example has no TXT record" },
    { check: "dkim", result: "passed", why: null },
    {
      check: "dmarc",
      result: "unanswered",
      why: "_dmarc.mail.acme.example (TXT) could not be looked up: there was no answer in time",
    },
  ],
} satisfies Static<typeof OperatorDomain>;
