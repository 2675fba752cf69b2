import type { JobIds } from "../../domain/ids.ts";
import { isJsonObject } from "../../domain/texts/json.ts";
import { type Refusal, unknownMember } from "../../http/sending/acceptance.ts";
import type { PassDesk } from "../../http/sending/carried-pass.ts";
import { discard, newPass, type PassTakingPorts, requireCredentials, requireOwn, storeOnce } from "./pass-taking.ts";
import { resolveGoogleIssuer } from "./platform.ts";
import { NO_TOKENS } from "./refusals.ts";
import { acceptPass } from "./request/accept-pass.ts";
import { CarriedPass } from "./request/pass-schema.ts";
import { Fault } from "./request/readers.ts";

export interface PassDeskPorts extends PassTakingPorts {
  readonly jobIds: JobIds;
}

const MEMBERS = ["pass_type", "pass_data", "template_id"];
const AT = "pass.";
/** A sentence that begins with one of the members. */
const OF_MEMBER = /^(?:pass_type|pass_data|template_id)\b/;

/** Accepts passes that messages carry, as `POST /v1/passes/create` would, for the message's job. */
export function passDesk(ports: PassDeskPorts): PassDesk {
  return {
    schema: CarriedPass,
    noTokens: NO_TOKENS,
    read(tenant, given) {
      if (!isJsonObject(given)) return malformed("pass must be an object, as in POST /v1/passes/create");
      const unknown = unknownMember(given, MEMBERS);
      if (unknown !== null)
        return {
          ...unknown,
          message: unknown.message.replace("this request", "pass"),
          param: `${AT}${unknown.param ?? ""}`,
        };
      const issuerId = resolveGoogleIssuer(tenant, ports.platform)?.issuerId ?? null;
      const { templates } = tenant.wallet;
      const accepted = acceptPass(given, { templates, title: tenant.name, issuerId, kind: "eventTicket" });
      if (accepted instanceof Fault) {
        const { message, code, param } = accepted;
        const shown = `${OF_MEMBER.test(message) ? AT : "pass: "}${message}`;
        return { status: 400, message: shown, code, param: param === undefined ? undefined : `${AT}${param}` };
      }
      const { type } = accepted.content;
      const passId = ports.jobIds.next();
      return {
        pass: { passId, type },
        charge: {
          async take(jobId, idempotency) {
            await requireOwn(ports, tenant, accepted, AT);
            await requireCredentials(ports, tenant, type);
            const pass = newPass(ports, tenant, accepted, { passId, jobId });
            return storeOnce(ports, tenant, { pass, idempotency, at: AT });
          },
          undo: (jobId) => discard(ports, { tenantId: tenant.tenantId, jobId }),
        },
      };
    },
  };
}

function malformed(message: string): Refusal {
  return { status: 400, message };
}
