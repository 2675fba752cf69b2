export const HEADER_MEDIA_TYPES = ["image", "video", "document"] as const;
export type HeaderMediaType = (typeof HEADER_MEDIA_TYPES)[number];

/** Media of a template's header. Exactly one of `link` (public https address) and `id` (uploaded media) is present. */
export interface HeaderMedia {
  readonly type: HeaderMediaType;
  readonly link?: string;
  readonly id?: string;
  /** The name of a document on the phone. */
  readonly filename?: string;
}

/** A tenant's own name for one of the provider's templates. */
export interface WhatsappAlias {
  readonly metaName: string;
  /** Null: the service's default language. */
  readonly languageCode: string | null;
  /** Describes each position, for people. */
  readonly params: readonly string[];
  readonly header: HeaderMedia | null;
}

/** A phone number to send from, and the credentials for it. */
export interface WhatsappSender {
  readonly phoneNumberId: string;
  readonly accessToken: string;
  /** The provider's id of the account that has the number and its templates; absent: not known. */
  readonly accountId?: string;
}

/**
 * The provider's id of a person for one business, or for several linked ones (`ENT`): the only identification of people
 * who hide their number behind a username (WhatsApp Cloud API, "Business-scoped user IDs").
 */
export const WHATSAPP_USER_ID = /^[A-Za-z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$/;

/** A tenant's name for a template. */
export const TEMPLATE_ALIAS = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Language of a template as the provider writes it: `es`, `en_US`, `zh_HK`. */
export const LANGUAGE_CODE = /^[A-Za-z]{2,3}(?:[_-][A-Za-z0-9]{2,8}){0,2}$/;

/** The provider's id of a phone number, not the number itself; and of an account. */
export const PHONE_NUMBER_ID = /^[0-9]{1,32}$/;

/** Characters that fit into an Authorization header (RFC 6750, 2.1, and those in other tokens that providers issue). */
export const ACCESS_TOKEN = /^[!-~]{1,2000}$/;

export const DEFAULT_LANGUAGE = "es";
