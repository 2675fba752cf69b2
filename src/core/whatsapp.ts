/** Payload of a chat job, as intake writes it and the chat channel reads it: aliases are translated, values are text. */
export interface WhatsappPayload {
  /** Digits, with the country's code. */
  readonly to: string;
  /** The provider's name of the template. */
  readonly template: string;
  readonly language: string;
  /** Values of `{{1}}`, `{{2}}`, … of the template's body, in order. */
  readonly params: readonly string[];
  readonly header?: HeaderMedia;
}

export const HEADER_MEDIA_TYPES = ["image", "video", "document"] as const;
export type HeaderMediaType = (typeof HEADER_MEDIA_TYPES)[number];

/** Media of a template's header. Exactly one of `link` (public https address) and `id` (uploaded media) is there. */
export interface HeaderMedia {
  readonly type: HeaderMediaType;
  readonly link?: string;
  readonly id?: string;
  /** What a document is called on the phone. */
  readonly filename?: string;
}

/** A tenant's own name for one of the provider's templates. */
export interface WhatsappAlias {
  readonly metaName: string;
  /** Null: the service's default language. */
  readonly languageCode: string | null;
  /** What each position holds, for people. */
  readonly params: readonly string[];
  readonly header: HeaderMedia | null;
}

/** A phone number to send from, and the right to. */
export interface WhatsappSender {
  readonly phoneNumberId: string;
  readonly accessToken: string;
}

export const DEFAULT_LANGUAGE = "es";
