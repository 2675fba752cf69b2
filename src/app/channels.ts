import { emailWithPass } from "../channels/email/carried-pass.ts";
import { emailTemplateKind } from "../channels/email/content/template-kind.ts";
import { emailContentKind } from "../channels/email/content-kind.ts";
import { EMAIL_CREDENTIALS } from "../channels/email/credential-kinds.ts";
import { emailEndpoints, emailRegistry } from "../channels/email/endpoints.ts";
import { emailPart } from "../channels/email/tenant-part.ts";
import { walletContentKind } from "../channels/wallet/content-kind.ts";
import { WALLET_CREDENTIALS } from "../channels/wallet/credential-kinds.ts";
import { walletEndpoints, walletRegistry } from "../channels/wallet/endpoints.ts";
import { carriedPassCharges, walletCharges } from "../channels/wallet/retry-charges.ts";
import { walletTemplateKind } from "../channels/wallet/template-kind.ts";
import { walletPart } from "../channels/wallet/tenant-part.ts";
import { chatWithPass } from "../channels/whatsapp/carried-pass.ts";
import { whatsappContentKind } from "../channels/whatsapp/content-kind.ts";
import { WHATSAPP_CREDENTIALS } from "../channels/whatsapp/credential-kinds.ts";
import { whatsappEndpoints, whatsappRegistry } from "../channels/whatsapp/endpoints.ts";
import { whatsappPart } from "../channels/whatsapp/tenant-part.ts";
import type { AppChannel } from "./app-channel.ts";
import { shownWithPass } from "./carried-passes.ts";
import { startEmail } from "./email.ts";
import { startWallet } from "./wallet.ts";
import { startWhatsapp } from "./whatsapp.ts";

const email: AppChannel = {
  name: "email",
  letter: "e",
  endpoints: emailEndpoints,
  registry: emailRegistry,
  tenantPart: emailPart,
  credentialKinds: EMAIL_CREDENTIALS,
  contentKind: () => shownWithPass(emailContentKind, emailWithPass),
  fillPass: emailWithPass,
  retryCharges: ({ passes }) => carriedPassCharges(passes),
  templateKind: emailTemplateKind,
  start: startEmail,
};

const whatsapp: AppChannel = {
  name: "whatsapp",
  letter: "w",
  endpoints: whatsappEndpoints,
  registry: whatsappRegistry,
  tenantPart: whatsappPart,
  credentialKinds: WHATSAPP_CREDENTIALS,
  contentKind: () => shownWithPass(whatsappContentKind, chatWithPass),
  fillPass: chatWithPass,
  retryCharges: ({ passes }) => carriedPassCharges(passes),
  start: startWhatsapp,
};

const wallet: AppChannel = {
  name: "wallet",
  letter: "p",
  endpoints: walletEndpoints,
  registry: walletRegistry,
  tenantPart: walletPart,
  credentialKinds: WALLET_CREDENTIALS,
  contentKind: ({ wallet: { passes } }) => walletContentKind(passes),
  retryCharges: ({ passes }) => walletCharges(passes),
  templateKind: walletTemplateKind,
  start: startWallet,
};

/** The channels of this release. `docs/adding-a-channel.md` says what another one is made of. */
export const CHANNELS: readonly AppChannel[] = [email, whatsapp, wallet];
