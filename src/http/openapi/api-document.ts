import { domainPaths } from "../../channels/email/domains/api-paths.ts";
import { domainSchemas } from "../../channels/email/domains/api-schemas.ts";
import { publicPaths } from "../../channels/email/links/api-paths.ts";
import { mailReportPaths } from "../../channels/email/reports/api-paths.ts";
import { walletPaths } from "../../channels/wallet/api-paths.ts";
import { walletSchemas } from "../../channels/wallet/api-schemas.ts";
import { passKitPaths } from "../../channels/wallet/devices/api-paths.ts";
import { googleClassPaths, googleClassSchemas } from "../../channels/wallet/google-class-paths.ts";
import { chatPaths } from "../../channels/whatsapp/api-paths.ts";
import { chatSchemas } from "../../channels/whatsapp/api-schemas.ts";
import type { JsonObject } from "../../domain/json.ts";
import { exportPaths } from "../../events/export-paths.ts";
import { answerSchemas } from "./answer-schemas.ts";
import { responses } from "./answers.ts";
import { operatorPaths } from "./operator-paths.ts";
import { servicePaths } from "./service-paths.ts";
import { tenantPaths } from "./tenant-paths.ts";

/** Transitional: the paths that are not declared yet. */
// oxlint-disable-next-line typescript/no-explicit-any
export function withOldPaths(document: any): object {
  const paths: JsonObject = {
    ...tenantPaths,
    ...chatPaths,
    ...walletPaths,
    ...googleClassPaths,
    ...domainPaths,
    ...operatorPaths,
    ...mailReportPaths,
    ...exportPaths,
    ...publicPaths,
    ...passKitPaths,
    ...servicePaths,
  };
  const { components } = document;
  return {
    ...document,
    paths: { ...paths, ...document.paths },
    components: {
      ...components,
      responses: { ...responses, ...components.responses },
      schemas: {
        ...answerSchemas,
        ...domainSchemas,
        ...chatSchemas,
        ...walletSchemas,
        ...googleClassSchemas,
        ...components.schemas,
      },
    },
  };
}
