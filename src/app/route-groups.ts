import type { Elysia } from "elysia";
import { credentialRoutes } from "../channels/email/credential-routes.ts";
import { operatorDomainRoutes } from "../channels/email/domains/operator-routes.ts";
import { domainRoutes } from "../channels/email/domains/routes.ts";
import { trackingRoutes } from "../channels/email/links/tracking-routes.ts";
import { unsubscribeRoutes } from "../channels/email/links/unsubscribe-routes.ts";
import { mailReportRoutes } from "../channels/email/reports/routes.ts";
import { sendEmailRoutes } from "../channels/email/routes.ts";
import { walletCredentialRoutes } from "../channels/wallet/credential-routes.ts";
import { passKitRoutes } from "../channels/wallet/devices/pass-kit-routes.ts";
import { googleClassRoutes } from "../channels/wallet/google-class-routes.ts";
import { passRoutes } from "../channels/wallet/pass-routes.ts";
import { sendWalletRoutes } from "../channels/wallet/routes.ts";
import { walletWebhookRoutes } from "../channels/wallet/webhook-routes.ts";
import { aliasRoutes } from "../channels/whatsapp/alias-routes.ts";
import { whatsappCredentialRoutes } from "../channels/whatsapp/credential-routes.ts";
import { incomingMessageRoutes } from "../channels/whatsapp/incoming-message-routes.ts";
import { sendWhatsappRoutes } from "../channels/whatsapp/routes.ts";
import { whatsappWebhookRoutes } from "../channels/whatsapp/webhook-routes.ts";
import { eventRoutes } from "../events/event-routes.ts";
import { exportRoutes } from "../events/export-routes.ts";
import { jobRoutes } from "../events/job-routes.ts";
import type { FrontDoor } from "../http/front-door.ts";
import { serviceRoutes } from "../http/service.ts";
import { dashboardRoutes } from "../operators/dashboard-routes.ts";
import { sandboxRoutes } from "../operators/sandbox-routes.ts";
import { keyRoutes } from "../tenants/key-routes.ts";
import { planRoutes } from "../tenants/plan-routes.ts";
import { suppressionRoutes } from "../tenants/suppression-routes.ts";
import { templateRoutes } from "../tenants/template-routes.ts";
import { tenantRoutes } from "../tenants/tenant-routes.ts";
import { tokenRoutes } from "../tenants/token-routes.ts";

/** Routes that are not declared yet. */
export const ROUTE_GROUPS: readonly ((app: Elysia, door: FrontDoor) => void)[] = [
  sendEmailRoutes,
  sendWhatsappRoutes,
  sendWalletRoutes,
  passRoutes,
  googleClassRoutes,
  jobRoutes,
  eventRoutes,
  domainRoutes,
  trackingRoutes,
  unsubscribeRoutes,
  passKitRoutes,
  whatsappWebhookRoutes,
  serviceRoutes,
  dashboardRoutes,
  tenantRoutes,
  keyRoutes,
  credentialRoutes,
  whatsappCredentialRoutes,
  walletCredentialRoutes,
  walletWebhookRoutes,
  aliasRoutes,
  incomingMessageRoutes,
  operatorDomainRoutes,
  templateRoutes,
  tokenRoutes,
  suppressionRoutes,
  planRoutes,
  sandboxRoutes,
  mailReportRoutes,
  exportRoutes,
];
