import type { AppChannel } from "../channels/contract.ts";
import { email } from "../channels/email/wiring/email.ts";
import { wallet } from "../channels/wallet/wiring/wallet.ts";
import { whatsapp } from "../channels/whatsapp/wiring.ts";

/** The channels of this release. `docs/adding-a-channel.md` says what another one is made of. */
export const CHANNELS: readonly AppChannel[] = [email, whatsapp, wallet];
