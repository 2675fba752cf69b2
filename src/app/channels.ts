import { emailEndpoints, emailRegistry } from "../channels/email/endpoints.ts";
import { emailTemplateKind } from "../channels/email/template-kind.ts";
import { emailPart } from "../channels/email/tenant-part.ts";
import { walletEndpoints, walletRegistry } from "../channels/wallet/endpoints.ts";
import { walletTemplateKind } from "../channels/wallet/template-kind.ts";
import { walletPart } from "../channels/wallet/tenant-part.ts";
import { whatsappEndpoints, whatsappRegistry } from "../channels/whatsapp/endpoints.ts";
import { whatsappPart } from "../channels/whatsapp/tenant-part.ts";
import type { AppChannel } from "./app-channel.ts";
import { startEmail } from "./email.ts";
import { startWallet } from "./wallet.ts";
import { startWhatsapp } from "./whatsapp.ts";

const email: AppChannel = {
  name: "email",
  letter: "e",
  endpoints: emailEndpoints,
  registry: emailRegistry,
  tenantPart: emailPart,
  templateKind: emailTemplateKind,
  start: startEmail,
};

const whatsapp: AppChannel = {
  name: "whatsapp",
  letter: "w",
  endpoints: whatsappEndpoints,
  registry: whatsappRegistry,
  tenantPart: whatsappPart,
  start: startWhatsapp,
};

const wallet: AppChannel = {
  name: "wallet",
  letter: "p",
  endpoints: walletEndpoints,
  registry: walletRegistry,
  tenantPart: walletPart,
  templateKind: walletTemplateKind,
  start: startWallet,
};

/** The channels of this release. `docs/adding-a-channel.md` says what another one is made of. */
export const CHANNELS: readonly AppChannel[] = [email, whatsapp, wallet];
