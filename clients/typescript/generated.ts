// Written by `bun infra/generate-client.ts` from the OpenAPI document. Do not edit: `npm run check` holds the two equal.

/** Any JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

export type JsonObject = { readonly [name: string]: Json | undefined };

export type PendingJob = {
  job_id: string;
  status: "pending";
  /** Jobs of their own, in the order of the request's; absent: it had none. */
  fallback?: readonly {
    job_id: string;
    /** When it is sent, if it is needed. */
    scheduled_at: string;
  }[];
};

/** Why a call was refused, in one word for programs. Later releases have more. */
export type ErrorCode =
  | "bad_request"
  | "invalid_json"
  | "invalid_member"
  | "unknown_member"
  | "unknown_template"
  | "invalid_cursor"
  | "invalid_idempotency_key"
  | "wrong_content_type"
  | "unauthorized"
  | "invalid_api_key"
  | "invalid_operator_token"
  | "insufficient_tokens"
  | "forbidden"
  | "scope_missing"
  | "channel_not_enabled"
  | "sends_on_hold"
  | "permission_missing"
  | "read_only_operator"
  | "not_found"
  | "no_such_alias"
  | "no_such_class"
  | "no_such_credentials"
  | "no_such_domain"
  | "no_such_file"
  | "no_such_job"
  | "no_such_key"
  | "no_such_link"
  | "no_such_operator"
  | "no_such_pass"
  | "no_such_suppression"
  | "no_such_template"
  | "no_such_tenant"
  | "no_such_webhook"
  | "method_not_allowed"
  | "request_timeout"
  | "conflict"
  | "already_exists"
  | "limit_reached"
  | "job_state"
  | "payload_too_large"
  | "unsupported_encoding"
  | "unprocessable"
  | "html_violation"
  | "domain_not_verified"
  | "reply_window_closed"
  | "idempotency_conflict"
  | "too_many_at_once"
  | "rate_limited"
  | "queue_share_exceeded"
  | "daily_limit_reached"
  | "internal_error"
  | "service_unreachable"
  | "outcome_unknown"
  | "not_configured"
  | "unavailable"
  | "not_ready";

export type Problem = {
  /** One of each code, relative to the server's address. */
  type: string;
  /** The meaning of the code. */
  title: string;
  status: number;
  /** The sentence of `error`. */
  detail: string;
  code: ErrorCode;
  /** The member or parameter that it is about, such as `fallback[0].send.subject`. */
  param?: string;
} & JsonObject;

export type ErrorBody = {
  /** One sentence that a person can act on. */
  error: string;
};

export type ContentError = {
  error: string;
  violations?: readonly { rule: "empty" | "too_large" | "image_only" | "script"; message: string }[];
};

export type PassField = {
  /** Unique in the whole pass. */
  key: string;
  value: string | number;
  label?: string | null;
  /** Shown when an update changes the value; `%@` stands for it. */
  changeMessage?: string | null;
  textAlignment?:
    | "PKTextAlignmentLeft"
    | "PKTextAlignmentCenter"
    | "PKTextAlignmentRight"
    | "PKTextAlignmentNatural"
    | null;
  attributedValue?: (string | number) | null;
  dataDetectorTypes?:
    | readonly (
        | "PKDataDetectorTypePhoneNumber"
        | "PKDataDetectorTypeLink"
        | "PKDataDetectorTypeAddress"
        | "PKDataDetectorTypeCalendarEvent"
      )[]
    | null;
  dateStyle?:
    | "PKDateStyleNone"
    | "PKDateStyleShort"
    | "PKDateStyleMedium"
    | "PKDateStyleLong"
    | "PKDateStyleFull"
    | null;
  timeStyle?:
    | "PKDateStyleNone"
    | "PKDateStyleShort"
    | "PKDateStyleMedium"
    | "PKDateStyleLong"
    | "PKDateStyleFull"
    | null;
  isRelative?: boolean | null;
  ignoresTimeZone?: boolean | null;
  numberStyle?:
    | "PKNumberStyleDecimal"
    | "PKNumberStylePercent"
    | "PKNumberStyleScientific"
    | "PKNumberStyleSpellOut"
    | null;
  /** ISO 4217. */
  currencyCode?: string | null;
  /** Auxiliary, eventTicket only. */
  row?: (0 | 1) | null;
  /** As Apple's pass.json has it. */
  semantics?: JsonObject | null;
};

export type PassBarcode = {
  message: string;
  format:
    | "PKBarcodeFormatQR"
    | "PKBarcodeFormatPDF417"
    | "PKBarcodeFormatAztec"
    | "PKBarcodeFormatCode128"
    | "PKBarcodeFormatCode39"
    | "PKBarcodeFormatCodabar"
    | "PKBarcodeFormatEAN13"
    | "PKBarcodeFormatI2of5";
  /** By default iso-8859-1, or utf-8 where it takes that. */
  messageEncoding?: string | null;
  altText?: string | null;
};

export type PassDates = {
  /** With time and zone, such as 2026-12-31T23:59:00+01:00. */
  date?: string | null;
  /** With time and zone, such as 2026-12-31T23:59:00+01:00. */
  relevantDate?: string | null;
  /** With time and zone, such as 2026-12-31T23:59:00+01:00. */
  startDate?: string | null;
  /** With time and zone, such as 2026-12-31T23:59:00+01:00. */
  endDate?: string | null;
};

export type PassLocation = {
  latitude: number;
  longitude: number;
  altitude?: number | null;
  relevantText?: string | null;
};

export type PassBeacon = {
  proximityUUID: string;
  major?: number | null;
  minor?: number | null;
  relevantText?: string | null;
};

/** With either `url` or `placeIdentifier`. */
export type PassFeaturedAction = {
  identifier: string;
  /** Such as `viewSchedule`, `call`, `shop` or `place`. */
  type: string;
  url?: string | null;
  placeIdentifier?: string | null;
} & ({ url: string } | { placeIdentifier: string });

export type PassUpcomingImage = {
  URLs?: readonly { URL: string; SHA256: string; scale?: number | null; size?: number | null }[] | null;
  reuseExisting?: boolean | null;
};

export type PassUpcoming = {
  identifier: string;
  name: string;
  /** `event`. */
  type: string;
  isActive?: boolean | null;
  dateInformation?: {
    /** With time and zone, such as 2026-12-31T23:59:00+01:00. */
    date?: string | null;
    ignoreTimeComponents?: boolean | null;
    isAllDay?: boolean | null;
    isUnannounced?: boolean | null;
    isUndetermined?: boolean | null;
    timeZone?: string | null;
  } | null;
  additionalInfoFields?: readonly PassField[] | null;
  backFields?: readonly PassField[] | null;
  auxiliaryStoreIdentifiers?: readonly number[] | null;
  images?: { headerImage?: PassUpcomingImage | null; venueMap?: PassUpcomingImage | null } | null;
  /** As Apple's pass.json has it. */
  semantics?: JsonObject | null;
  URLs?: {
    accessibilityURL?: string | null;
    addOnURL?: string | null;
    bagPolicyURL?: string | null;
    contactVenueWebsite?: string | null;
    directionsInformationURL?: string | null;
    merchandiseURL?: string | null;
    orderFoodURL?: string | null;
    parkingInformationURL?: string | null;
    purchaseParkingURL?: string | null;
    sellURL?: string | null;
    transferURL?: string | null;
    transitInformationURL?: string | null;
    contactVenueEmail?: string | null;
    contactVenuePhoneNumber?: string | null;
  } | null;
};

export type PassLocalization = {
  /** Text of the pass → text to show. */
  strings?: { readonly [name: string]: string } | null;
  /** PNG in base64, 29x29; a placeholder where there is none. */
  icon_base64?: string | null;
  /** PNG in base64. */
  icon_2x_base64?: string | null;
  /** PNG in base64. */
  icon_3x_base64?: string | null;
  /** PNG in base64, 160x50. */
  logo_base64?: string | null;
  /** PNG in base64. */
  logo_2x_base64?: string | null;
  /** PNG in base64. */
  logo_3x_base64?: string | null;
  /** PNG in base64, 375x144. */
  strip_base64?: string | null;
  /** PNG in base64. */
  strip_2x_base64?: string | null;
  /** PNG in base64. */
  strip_3x_base64?: string | null;
  /** PNG in base64, 90x90. */
  thumbnail_base64?: string | null;
  /** PNG in base64. */
  thumbnail_2x_base64?: string | null;
  /** PNG in base64. */
  thumbnail_3x_base64?: string | null;
  /** PNG in base64. */
  background_base64?: string | null;
  /** PNG in base64. */
  background_2x_base64?: string | null;
  /** PNG in base64. */
  background_3x_base64?: string | null;
  /** PNG in base64. */
  footer_base64?: string | null;
  /** PNG in base64. */
  footer_2x_base64?: string | null;
  /** PNG in base64. */
  footer_3x_base64?: string | null;
  /** PNG in base64, 358x448, of poster passes. */
  artwork_base64?: string | null;
  /** PNG in base64. */
  artwork_2x_base64?: string | null;
  /** PNG in base64. */
  artwork_3x_base64?: string | null;
  /** PNG in base64, up to 126x30, of poster passes. */
  primary_logo_base64?: string | null;
  /** PNG in base64. */
  primary_logo_2x_base64?: string | null;
  /** PNG in base64. */
  primary_logo_3x_base64?: string | null;
  /** PNG in base64, up to 135x12, of poster passes. */
  secondary_logo_base64?: string | null;
  /** PNG in base64. */
  secondary_logo_2x_base64?: string | null;
  /** PNG in base64. */
  secondary_logo_3x_base64?: string | null;
  /** PNG in base64. */
  venue_map_base64?: string | null;
  /** PNG in base64. */
  venue_map_2x_base64?: string | null;
  /** PNG in base64. */
  venue_map_3x_base64?: string | null;
  /** PNG in base64, 150x40, of the sign-up form. */
  personalization_logo_base64?: string | null;
  /** PNG in base64. */
  personalization_logo_2x_base64?: string | null;
  /** PNG in base64. */
  personalization_logo_3x_base64?: string | null;
};

export type ApplePassData = {
  /** Used once. An update cannot change it. */
  serial_number: string;
  organization_name: string;
  description: string;
  style?: "eventTicket" | "boardingPass" | "coupon" | "storeCard" | "generic" | "posterGeneric" | null;
  /** boardingPass only. */
  transit_type?:
    | "PKTransitTypeGeneric"
    | "PKTransitTypeAir"
    | "PKTransitTypeBoat"
    | "PKTransitTypeBus"
    | "PKTransitTypeTrain"
    | null;
  header_fields?: readonly PassField[] | null;
  primary_fields?: readonly PassField[] | null;
  secondary_fields?: readonly PassField[] | null;
  auxiliary_fields?: readonly PassField[] | null;
  back_fields?: readonly PassField[] | null;
  additional_info_fields?: readonly PassField[] | null;
  footer_fields?: readonly PassField[] | null;
  /** PNG in base64, 29x29; a placeholder where there is none. */
  icon_base64?: string | null;
  /** PNG in base64. */
  icon_2x_base64?: string | null;
  /** PNG in base64. */
  icon_3x_base64?: string | null;
  /** PNG in base64, 160x50. */
  logo_base64?: string | null;
  /** PNG in base64. */
  logo_2x_base64?: string | null;
  /** PNG in base64. */
  logo_3x_base64?: string | null;
  /** PNG in base64, 375x144. */
  strip_base64?: string | null;
  /** PNG in base64. */
  strip_2x_base64?: string | null;
  /** PNG in base64. */
  strip_3x_base64?: string | null;
  /** PNG in base64, 90x90. */
  thumbnail_base64?: string | null;
  /** PNG in base64. */
  thumbnail_2x_base64?: string | null;
  /** PNG in base64. */
  thumbnail_3x_base64?: string | null;
  /** PNG in base64. */
  background_base64?: string | null;
  /** PNG in base64. */
  background_2x_base64?: string | null;
  /** PNG in base64. */
  background_3x_base64?: string | null;
  /** PNG in base64. */
  footer_base64?: string | null;
  /** PNG in base64. */
  footer_2x_base64?: string | null;
  /** PNG in base64. */
  footer_3x_base64?: string | null;
  /** PNG in base64, 358x448, of poster passes. */
  artwork_base64?: string | null;
  /** PNG in base64. */
  artwork_2x_base64?: string | null;
  /** PNG in base64. */
  artwork_3x_base64?: string | null;
  /** PNG in base64, up to 126x30, of poster passes. */
  primary_logo_base64?: string | null;
  /** PNG in base64. */
  primary_logo_2x_base64?: string | null;
  /** PNG in base64. */
  primary_logo_3x_base64?: string | null;
  /** PNG in base64, up to 135x12, of poster passes. */
  secondary_logo_base64?: string | null;
  /** PNG in base64. */
  secondary_logo_2x_base64?: string | null;
  /** PNG in base64. */
  secondary_logo_3x_base64?: string | null;
  /** PNG in base64. */
  venue_map_base64?: string | null;
  /** PNG in base64. */
  venue_map_2x_base64?: string | null;
  /** PNG in base64. */
  venue_map_3x_base64?: string | null;
  /** PNG in base64, 150x40, of the sign-up form. */
  personalization_logo_base64?: string | null;
  /** PNG in base64. */
  personalization_logo_2x_base64?: string | null;
  /** PNG in base64. */
  personalization_logo_3x_base64?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  background_color?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  foreground_color?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  label_color?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  strip_color?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  footer_background_color?: string | null;
  barcodes?: readonly PassBarcode[] | null;
  /** With time and zone, such as 2026-12-31T23:59:00+01:00. */
  relevant_date?: string | null;
  relevant_dates?: readonly PassDates[] | null;
  /** With time and zone, such as 2026-12-31T23:59:00+01:00. */
  expiration_date?: string | null;
  locations?: readonly PassLocation[] | null;
  beacons?: readonly PassBeacon[] | null;
  max_distance?: number | null;
  /** eventTicket and boardingPass only. */
  grouping_identifier?: string | null;
  voided?: boolean | null;
  sharing_prohibited?: boolean | null;
  suppress_strip_shine?: boolean | null;
  suppress_header_darkening?: boolean | null;
  use_automatic_colors?: boolean | null;
  logo_text?: string | null;
  event_logo_text?: string | null;
  logo_symbol_name?: string | null;
  business_chat_identifier?: string | null;
  transit_provider_email?: string | null;
  transit_provider_phone_number?: string | null;
  contact_venue_email?: string | null;
  contact_venue_phone_number?: string | null;
  accessibility_url?: string | null;
  add_on_url?: string | null;
  bag_policy_url?: string | null;
  contact_venue_website?: string | null;
  directions_information_url?: string | null;
  merchandise_url?: string | null;
  order_food_url?: string | null;
  parking_information_url?: string | null;
  purchase_parking_url?: string | null;
  sell_url?: string | null;
  transfer_url?: string | null;
  transit_information_url?: string | null;
  change_seat_url?: string | null;
  entertainment_url?: string | null;
  management_url?: string | null;
  purchase_additional_baggage_url?: string | null;
  purchase_lounge_access_url?: string | null;
  purchase_wifi_url?: string | null;
  register_service_animal_url?: string | null;
  report_lost_bag_url?: string | null;
  request_wheelchair_url?: string | null;
  transit_provider_website_url?: string | null;
  upgrade_url?: string | null;
  /** Needs `associated_store_identifiers` beside it. */
  app_launch_url?: string | null;
  associated_store_identifiers?: readonly number[] | null;
  auxiliary_store_identifiers?: readonly number[] | null;
  /** As Apple's pass.json has it. */
  user_info?: JsonObject | null;
  /** As Apple's pass.json has it. */
  semantics?: JsonObject | null;
  /** Only with a certificate that Apple issued for NFC. */
  nfc?: {
    message: string;
    /** Base64 of the SubjectPublicKeyInfo of an ECDH key on P-256. */
    encryptionPublicKey: string;
    requiresAuthentication?: boolean | null;
  } | null;
  /** Such as `posterEventTicket` for an eventTicket, or `semanticBoardingPass` for a boardingPass. */
  preferred_style_schemes?: readonly string[] | null;
  featured_actions?: readonly PassFeaturedAction[] | null;
  upcoming_pass_information?: readonly PassUpcoming[] | null;
  /**
   * Wallet asks the holder for these before it adds the pass, and the webhook event `pass.personalized` has what
   * was entered. For a storeCard with `nfc` and a `personalization_logo` of 2x or 3x.
   */
  personalization?: {
    requiredPersonalizationFields: readonly string[];
    description: string;
    termsAndConditions?: string | null;
  } | null;
  /**
   * By language, such as `de` or `pt-BR`: what is shown in place of the pass's own texts and images. An update
   * replaces what it names of a language, and null takes a language off. At most 50.
   */
  localizations?: { readonly [name: string]: PassLocalization | null } | null;
  /** Members of Apple's pass.json that are not known here, copied into it as they are; at most 65536 characters. */
  extra?: JsonObject | null;
};

export type AppleCarriedPass = {
  pass_type: "apple";
  pass_data: ApplePassData;
  /** Counts as absent. */
  template_id?: null;
};

export type LocalizedText = { defaultValue: { language: string; value: string } & JsonObject } & JsonObject;

export type GoogleMoney = {
  /** The amount in millionths: 12.50 is 12500000. */
  micros: string | number;
  currencyCode: string;
} & JsonObject;

export type GooglePoints = {
  /** In one of these forms. */
  balance: {
    string?: string | null;
    int?: number | null;
    double?: number | null;
    money?: GoogleMoney | null;
  } & JsonObject;
} & JsonObject;

/**
 * The object as Google's REST API takes it. `id` and `classId` are those above, `state` is ACTIVE by default,
 * and a generic object without `cardTitle` or `header` gets the tenant's name there. A transit pass has
 * `ticketLeg` or `ticketLegs`, if it has a journey.
 */
export type GooglePassObject = {
  state?: "ACTIVE" | "COMPLETED" | "EXPIRED" | "INACTIVE" | null;
  ticketHolderName?: string | null;
  ticketNumber?: string | null;
  ticketType?: LocalizedText | null;
  cardTitle?: LocalizedText | null;
  header?: LocalizedText | null;
  subheader?: LocalizedText | null;
  /** Such as #0B1F3A. */
  hexBackgroundColor?: string | null;
  barcode?: ({ type: string; value: string } & JsonObject) | null;
  textModulesData?:
    | readonly ({
        /** Unique in the object. */
        id?: string | null;
        header?: string | null;
        body?: string | null;
      } & JsonObject)[]
    | null;
  linkedObjectIds?: readonly string[] | null;
  linkedOfferIds?: readonly string[] | null;
  loyaltyPoints?: GooglePoints | null;
  secondaryLoyaltyPoints?: GooglePoints | null;
  /** Required of a giftCard. */
  cardNumber?: string | null;
  balance?: GoogleMoney | null;
  /** Required of a transit pass, such as ONE_WAY or ROUND_TRIP. */
  tripType?: string | null;
  /** Required of a flight. */
  passengerName?: string | null;
  /** Required of a flight. */
  reservationInfo?: JsonObject | null;
} & JsonObject;

export type GooglePassData = {
  /** `<issuer_id>.<class_name>`, not another tenant's. */
  class_id: string;
  /** `<issuer_id>.<object_name>`, used once. */
  object_id: string;
  object_data: GooglePassObject;
  /** Empty counts as absent. */
  class_type?: "generic" | "eventTicket" | "loyalty" | "offer" | "giftCard" | "transit" | "flight" | "" | null;
};

export type GoogleCarriedPass = {
  pass_type: "google";
  pass_data: GooglePassData;
  /** Counts as absent. */
  template_id?: null;
};

/** Laid over the field of the same key. In an update, null as the value takes that field off. */
export type PassFieldPart = {
  /** Unique in the whole pass. */
  key: string;
  value?: (string | number) | null;
  label?: string | null;
  /** Shown when an update changes the value; `%@` stands for it. */
  changeMessage?: string | null;
  textAlignment?:
    | "PKTextAlignmentLeft"
    | "PKTextAlignmentCenter"
    | "PKTextAlignmentRight"
    | "PKTextAlignmentNatural"
    | null;
  attributedValue?: (string | number) | null;
  dataDetectorTypes?:
    | readonly (
        | "PKDataDetectorTypePhoneNumber"
        | "PKDataDetectorTypeLink"
        | "PKDataDetectorTypeAddress"
        | "PKDataDetectorTypeCalendarEvent"
      )[]
    | null;
  dateStyle?:
    | "PKDateStyleNone"
    | "PKDateStyleShort"
    | "PKDateStyleMedium"
    | "PKDateStyleLong"
    | "PKDateStyleFull"
    | null;
  timeStyle?:
    | "PKDateStyleNone"
    | "PKDateStyleShort"
    | "PKDateStyleMedium"
    | "PKDateStyleLong"
    | "PKDateStyleFull"
    | null;
  isRelative?: boolean | null;
  ignoresTimeZone?: boolean | null;
  numberStyle?:
    | "PKNumberStyleDecimal"
    | "PKNumberStylePercent"
    | "PKNumberStyleScientific"
    | "PKNumberStyleSpellOut"
    | null;
  /** ISO 4217. */
  currencyCode?: string | null;
  /** Auxiliary, eventTicket only. */
  row?: (0 | 1) | null;
  /** As Apple's pass.json has it. */
  semantics?: JsonObject | null;
};

/** Absent and null members are the template's. */
export type ApplePassPart = {
  /** Used once. An update cannot change it. */
  serial_number?: string | null;
  organization_name?: string | null;
  description?: string | null;
  style?: "eventTicket" | "boardingPass" | "coupon" | "storeCard" | "generic" | "posterGeneric" | null;
  /** boardingPass only. */
  transit_type?:
    | "PKTransitTypeGeneric"
    | "PKTransitTypeAir"
    | "PKTransitTypeBoat"
    | "PKTransitTypeBus"
    | "PKTransitTypeTrain"
    | null;
  header_fields?: readonly PassFieldPart[] | null;
  primary_fields?: readonly PassFieldPart[] | null;
  secondary_fields?: readonly PassFieldPart[] | null;
  auxiliary_fields?: readonly PassFieldPart[] | null;
  back_fields?: readonly PassFieldPart[] | null;
  additional_info_fields?: readonly PassFieldPart[] | null;
  footer_fields?: readonly PassFieldPart[] | null;
  /** PNG in base64, 29x29; a placeholder where there is none. */
  icon_base64?: string | null;
  /** PNG in base64. */
  icon_2x_base64?: string | null;
  /** PNG in base64. */
  icon_3x_base64?: string | null;
  /** PNG in base64, 160x50. */
  logo_base64?: string | null;
  /** PNG in base64. */
  logo_2x_base64?: string | null;
  /** PNG in base64. */
  logo_3x_base64?: string | null;
  /** PNG in base64, 375x144. */
  strip_base64?: string | null;
  /** PNG in base64. */
  strip_2x_base64?: string | null;
  /** PNG in base64. */
  strip_3x_base64?: string | null;
  /** PNG in base64, 90x90. */
  thumbnail_base64?: string | null;
  /** PNG in base64. */
  thumbnail_2x_base64?: string | null;
  /** PNG in base64. */
  thumbnail_3x_base64?: string | null;
  /** PNG in base64. */
  background_base64?: string | null;
  /** PNG in base64. */
  background_2x_base64?: string | null;
  /** PNG in base64. */
  background_3x_base64?: string | null;
  /** PNG in base64. */
  footer_base64?: string | null;
  /** PNG in base64. */
  footer_2x_base64?: string | null;
  /** PNG in base64. */
  footer_3x_base64?: string | null;
  /** PNG in base64, 358x448, of poster passes. */
  artwork_base64?: string | null;
  /** PNG in base64. */
  artwork_2x_base64?: string | null;
  /** PNG in base64. */
  artwork_3x_base64?: string | null;
  /** PNG in base64, up to 126x30, of poster passes. */
  primary_logo_base64?: string | null;
  /** PNG in base64. */
  primary_logo_2x_base64?: string | null;
  /** PNG in base64. */
  primary_logo_3x_base64?: string | null;
  /** PNG in base64, up to 135x12, of poster passes. */
  secondary_logo_base64?: string | null;
  /** PNG in base64. */
  secondary_logo_2x_base64?: string | null;
  /** PNG in base64. */
  secondary_logo_3x_base64?: string | null;
  /** PNG in base64. */
  venue_map_base64?: string | null;
  /** PNG in base64. */
  venue_map_2x_base64?: string | null;
  /** PNG in base64. */
  venue_map_3x_base64?: string | null;
  /** PNG in base64, 150x40, of the sign-up form. */
  personalization_logo_base64?: string | null;
  /** PNG in base64. */
  personalization_logo_2x_base64?: string | null;
  /** PNG in base64. */
  personalization_logo_3x_base64?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  background_color?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  foreground_color?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  label_color?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  strip_color?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  footer_background_color?: string | null;
  barcodes?: readonly PassBarcode[] | null;
  /** With time and zone, such as 2026-12-31T23:59:00+01:00. */
  relevant_date?: string | null;
  relevant_dates?: readonly PassDates[] | null;
  /** With time and zone, such as 2026-12-31T23:59:00+01:00. */
  expiration_date?: string | null;
  locations?: readonly PassLocation[] | null;
  beacons?: readonly PassBeacon[] | null;
  max_distance?: number | null;
  /** eventTicket and boardingPass only. */
  grouping_identifier?: string | null;
  voided?: boolean | null;
  sharing_prohibited?: boolean | null;
  suppress_strip_shine?: boolean | null;
  suppress_header_darkening?: boolean | null;
  use_automatic_colors?: boolean | null;
  logo_text?: string | null;
  event_logo_text?: string | null;
  logo_symbol_name?: string | null;
  business_chat_identifier?: string | null;
  transit_provider_email?: string | null;
  transit_provider_phone_number?: string | null;
  contact_venue_email?: string | null;
  contact_venue_phone_number?: string | null;
  accessibility_url?: string | null;
  add_on_url?: string | null;
  bag_policy_url?: string | null;
  contact_venue_website?: string | null;
  directions_information_url?: string | null;
  merchandise_url?: string | null;
  order_food_url?: string | null;
  parking_information_url?: string | null;
  purchase_parking_url?: string | null;
  sell_url?: string | null;
  transfer_url?: string | null;
  transit_information_url?: string | null;
  change_seat_url?: string | null;
  entertainment_url?: string | null;
  management_url?: string | null;
  purchase_additional_baggage_url?: string | null;
  purchase_lounge_access_url?: string | null;
  purchase_wifi_url?: string | null;
  register_service_animal_url?: string | null;
  report_lost_bag_url?: string | null;
  request_wheelchair_url?: string | null;
  transit_provider_website_url?: string | null;
  upgrade_url?: string | null;
  /** Needs `associated_store_identifiers` beside it. */
  app_launch_url?: string | null;
  associated_store_identifiers?: readonly number[] | null;
  auxiliary_store_identifiers?: readonly number[] | null;
  /** As Apple's pass.json has it. */
  user_info?: JsonObject | null;
  /** As Apple's pass.json has it. */
  semantics?: JsonObject | null;
  /** Only with a certificate that Apple issued for NFC. */
  nfc?: {
    message: string;
    /** Base64 of the SubjectPublicKeyInfo of an ECDH key on P-256. */
    encryptionPublicKey: string;
    requiresAuthentication?: boolean | null;
  } | null;
  /** Such as `posterEventTicket` for an eventTicket, or `semanticBoardingPass` for a boardingPass. */
  preferred_style_schemes?: readonly string[] | null;
  featured_actions?: readonly PassFeaturedAction[] | null;
  upcoming_pass_information?: readonly PassUpcoming[] | null;
  /**
   * Wallet asks the holder for these before it adds the pass, and the webhook event `pass.personalized` has what
   * was entered. For a storeCard with `nfc` and a `personalization_logo` of 2x or 3x.
   */
  personalization?: {
    requiredPersonalizationFields: readonly string[];
    description: string;
    termsAndConditions?: string | null;
  } | null;
  /**
   * By language, such as `de` or `pt-BR`: what is shown in place of the pass's own texts and images. An update
   * replaces what it names of a language, and null takes a language off. At most 50.
   */
  localizations?: { readonly [name: string]: PassLocalization | null } | null;
  /** Members of Apple's pass.json that are not known here, copied into it as they are; at most 65536 characters. */
  extra?: JsonObject | null;
};

/** Absent and null members are the template's; in `object_data`, null removes the template's value. */
export type GooglePassPart = {
  /** `<issuer_id>.<class_name>`, not another tenant's. */
  class_id?: string | null;
  /** Empty counts as absent. */
  class_type?: "generic" | "eventTicket" | "loyalty" | "offer" | "giftCard" | "transit" | "flight" | "" | null;
  /** `<issuer_id>.<object_name>`, used once. */
  object_id?: string | null;
  object_data?: GooglePassObject | null;
};

export type TemplateCarriedPass = {
  /** Slug of a registered wallet template. */
  template_id: string;
  /** The template's, or left out. */
  pass_type?: "apple" | "google" | null;
  /** The members that the template leaves open, or that differ from it. */
  pass_data?: (ApplePassPart | GooglePassPart) | null;
};

export type CarriedPass = AppleCarriedPass | GoogleCarriedPass | TemplateCarriedPass;

/** Messages that are sent only if this one is not received in time. */
export type Fallbacks = readonly {
  /**
   * How long after the message it is due, from 30 seconds to 72 hours: a whole number of seconds, minutes, hours
   * or days, such as 10m. Longer than that of the fallback before.
   */
  after: string;
  /**
   * It is not sent if the message, or a fallback before it, has had one of these events by then, or a stronger
   * one: sent, delivered, read or opened, clicked.
   */
  unless:
    | "sent"
    | "delivered"
    | "read"
    | "opened"
    | "clicked"
    | readonly ("sent" | "delivered" | "read" | "opened" | "clicked")[];
  /** The members of a send on that channel, except for `scheduled_at`. */
  send: {
    /** email or whatsapp. */
    channel: string;
  } & JsonObject;
}[];

export type EmailSend = {
  /**
   * One address (RFC 5321), no list, no display name, and no % or ! before the @, which some mail servers read as
   * a way to another domain. Internationalised domains are taken in either form; letters beyond ASCII before the @
   * need a relay with SMTPUTF8.
   */
  to_address: string;
  /** The recipient's display name. */
  to_name?: string | null;
  /** May hold {{.placeholders}}. By default the template's. */
  subject?: string | null;
  /** Slug of a registered template. Required unless `html` or `text` is given. */
  template_id?: string | null;
  /** Inline HTML, which takes precedence. Needs the permission allow_raw_html. */
  html?: string | null;
  /**
   * Inline text, with placeholders: beside HTML or a template what readers without HTML see, alone the whole
   * message. Needs the permission allow_raw_html.
   */
  text?: string | null;
  /** Further recipients, visible to all. With `to_address` and `bcc` at most 50. Suppressed ones are left out. */
  cc?: readonly (string | { address: string; name?: string | null })[] | null;
  /** Further recipients, hidden from all others. */
  bcc?: readonly (string | { address: string; name?: string | null })[] | null;
  /** Where answers go; by default to the sender. */
  reply_to?:
    | (
        | (string | { address: string; name?: string | null })
        | readonly (string | { address: string; name?: string | null })[]
      )
    | null;
  /**
   * Further headers by name: X-…, but not X-Waybill-… nor those by which mail services take orders (X-SMTPAPI,
   * X-SES-…), In-Reply-To, References, Auto-Submitted, Precedence, Importance, Feedback-ID, List-ID. Values are
   * one line; name and value have at most 998 bytes.
   */
  headers?: { readonly [name: string]: string | null } | null;
  /**
   * Without `opens` there is no pixel, without `clicks` links stay as they are. Absent members are as in the
   * template, or for the tenant, or true.
   */
  tracking?: {
    /** whether there is a pixel */
    opens?: boolean | null;
    /** whether links lead by us */
    clicks?: boolean | null;
  } | null;
  /** At most 10 MiB in all, decoded. */
  attachments?:
    | readonly {
        /** Without slashes and control characters. */
        filename: string;
        /** The file in base64. */
        content: string;
        /**
         * With its parameters. By default what the filename's ending says, else application/octet-stream. A
         * message/rfc822 in ASCII is attached as a message, any other as a file.
         */
        content_type?: string | null;
        /** The HTML shows the file as `cid:<content_id>`. One file each. */
        content_id?: string | null;
      }[]
    | null;
  /** Labels that the history is searched and summed by, each name once. Never put anybody's address here. */
  tags?: readonly { name: string; value: string }[] | null;
  /**
   * The topic of the message, by default its template's: 1 to 64 letters, digits, blanks and _ - . , & + ' (at
   * most 128 bytes), and begins with a letter or digit. Unsubscribing then ends messages on this topic alone.
   * Compared without regard to case.
   */
  topic?: string | null;
  /** Values for the placeholders of body and subject. */
  data?: JsonObject | null;
  pass?: CarriedPass | null;
  /**
   * When it is to be sent, at most 30 days ahead: date, time and zone in ISO 8601. A time that is past or less
   * than a second ahead: at once.
   */
  scheduled_at?: string | null;
  fallback?: Fallbacks | null;
} & ({ template_id: string } | { html: string } | { text: string });

export type BatchAnswer = {
  /** Messages that are queued, by their index. */
  jobs: readonly { index: number; job_id: string; status: "pending" }[];
  /** Messages that are not queued, by their index. */
  errors: readonly {
    index: number;
    error: string;
    code: ErrorCode;
    /** The member or parameter that it is about, such as `fallback[0].send.subject`. */
    param?: string;
    violations?: readonly { rule: "empty" | "too_large" | "image_only" | "script"; message: string }[];
  }[];
};

export type EmailSendInBatch = {
  /**
   * One address (RFC 5321), no list, no display name, and no % or ! before the @, which some mail servers read as
   * a way to another domain. Internationalised domains are taken in either form; letters beyond ASCII before the @
   * need a relay with SMTPUTF8.
   */
  to_address?: string;
  /** The recipient's display name. */
  to_name?: string | null;
  /** May hold {{.placeholders}}. By default the template's. */
  subject?: string | null;
  /** Slug of a registered template. Required unless `html` or `text` is given. */
  template_id?: string | null;
  /** Inline HTML, which takes precedence. Needs the permission allow_raw_html. */
  html?: string | null;
  /**
   * Inline text, with placeholders: beside HTML or a template what readers without HTML see, alone the whole
   * message. Needs the permission allow_raw_html.
   */
  text?: string | null;
  /** Further recipients, visible to all. With `to_address` and `bcc` at most 50. Suppressed ones are left out. */
  cc?: readonly (string | { address: string; name?: string | null })[] | null;
  /** Further recipients, hidden from all others. */
  bcc?: readonly (string | { address: string; name?: string | null })[] | null;
  /** Where answers go; by default to the sender. */
  reply_to?:
    | (
        | (string | { address: string; name?: string | null })
        | readonly (string | { address: string; name?: string | null })[]
      )
    | null;
  /**
   * Further headers by name: X-…, but not X-Waybill-… nor those by which mail services take orders (X-SMTPAPI,
   * X-SES-…), In-Reply-To, References, Auto-Submitted, Precedence, Importance, Feedback-ID, List-ID. Values are
   * one line; name and value have at most 998 bytes.
   */
  headers?: { readonly [name: string]: string | null } | null;
  /**
   * Without `opens` there is no pixel, without `clicks` links stay as they are. Absent members are as in the
   * template, or for the tenant, or true.
   */
  tracking?: {
    /** whether there is a pixel */
    opens?: boolean | null;
    /** whether links lead by us */
    clicks?: boolean | null;
  } | null;
  /** At most 10 MiB in all, decoded. */
  attachments?:
    | readonly {
        /** Without slashes and control characters. */
        filename: string;
        /** The file in base64. */
        content: string;
        /**
         * With its parameters. By default what the filename's ending says, else application/octet-stream. A
         * message/rfc822 in ASCII is attached as a message, any other as a file.
         */
        content_type?: string | null;
        /** The HTML shows the file as `cid:<content_id>`. One file each. */
        content_id?: string | null;
      }[]
    | null;
  /** Labels that the history is searched and summed by, each name once. Never put anybody's address here. */
  tags?: readonly { name: string; value: string }[] | null;
  /**
   * The topic of the message, by default its template's: 1 to 64 letters, digits, blanks and _ - . , & + ' (at
   * most 128 bytes), and begins with a letter or digit. Unsubscribing then ends messages on this topic alone.
   * Compared without regard to case.
   */
  topic?: string | null;
  /** Values for the placeholders of body and subject. */
  data?: JsonObject | null;
  /**
   * When it is to be sent, at most 30 days ahead: date, time and zone in ISO 8601. A time that is past or less
   * than a second ahead: at once.
   */
  scheduled_at?: string | null;
};

export type EmailSendBatch = { messages: readonly EmailSendInBatch[]; defaults?: EmailSendInBatch | null };

export type Domain = {
  Domain: string;
  /** Mail of this domain goes out through the platform's relay. */
  RelayEnabled: boolean;
  /** Pending: not verified yet. Failed: the last verification found something wrong. Changes by verification alone. */
  RelayStatus: "pending" | "verified" | "failed";
  /** Mail of this domain goes out through the tenant's own relay. */
  SMTPEnabled: boolean;
  /** Pending: not verified yet. Failed: the last verification found something wrong. Changes by verification alone. */
  SMTPStatus: "pending" | "verified" | "failed";
  DNSRecords: {
    /** To be published in the domain's DNS: return path (MX), SPF, DKIM and DMARC. */
    relay: readonly {
      type: "MX" | "TXT";
      name: string;
      /** One text. Where a zone takes at most 255 bytes a string, it is split into several. */
      value: string;
      /** MX only. */
      priority?: number;
    }[];
  };
};

export type DomainList = { domains: readonly Domain[] };

export type OperatorDomain = Domain & {
  created_at: string;
  /** The last verification. */
  checked_at: string | null;
  /** Its findings, record by record. */
  checks: readonly {
    check: "return_path" | "spf" | "dkim" | "dmarc" | "smtp";
    /** Unanswered: the check had no answer at that moment, which changes no status. */
    result: "passed" | "failed" | "unanswered";
    /** One sentence; null where it passed. */
    why: string | null;
  }[];
};

export type OperatorDomainList = { domains: readonly OperatorDomain[] };

export type CredentialsStored = {
  stored: true;
  /** Whether the channel uses them from now on. For e-mail, a sender's domain must be verified as well. */
  used: boolean;
  /** Why they are not used. */
  reason?: string;
};

export type MailReportsTaken = {
  /** Reports about messages of ours that were in it. */
  reports: number;
};

/**
 * Free text, instead of `template_id`: taken for 24 hours after the recipient's last message to the number that
 * sends, otherwise 422.
 */
export type ChatText =
  | string
  | {
      /** Line breaks and tabs are taken. */
      body: string;
      /** Whether the phone shows a preview of the text's first link. By default not. */
      preview_url?: boolean | null;
    };

/** A picture, video, sound, document or sticker. */
export type ChatMedia =
  | ({
      type: "image";
      /**
       * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
       * `id`.
       */
      link?: string | null;
      /** The provider's id of uploaded media. Either this or `link`. */
      id?: string | null;
      caption?: string | null;
    } & ({ link: string } | { id: string }))
  | ({
      type: "video";
      /**
       * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
       * `id`.
       */
      link?: string | null;
      /** The provider's id of uploaded media. Either this or `link`. */
      id?: string | null;
      caption?: string | null;
    } & ({ link: string } | { id: string }))
  | ({
      type: "audio";
      /**
       * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
       * `id`.
       */
      link?: string | null;
      /** The provider's id of uploaded media. Either this or `link`. */
      id?: string | null;
      /** Whether it is shown as recorded by voice: OGG with OPUS. */
      voice?: boolean | null;
    } & ({ link: string } | { id: string }))
  | ({
      type: "document";
      /**
       * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
       * `id`.
       */
      link?: string | null;
      /** The provider's id of uploaded media. Either this or `link`. */
      id?: string | null;
      caption?: string | null;
      /** Its name on the phone. */
      filename?: string | null;
    } & ({ link: string } | { id: string }))
  | ({
      type: "sticker";
      /**
       * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
       * `id`.
       */
      link?: string | null;
      /** The provider's id of uploaded media. Either this or `link`. */
      id?: string | null;
    } & ({ link: string } | { id: string }));

export type ChatLocation = { latitude: number; longitude: number; name?: string | null; address?: string | null };

export type ChatReaction = {
  /** The provider's id of the message that came in. */
  message_id: string;
  /** Empty: the reaction is taken back. */
  emoji: string;
};

export type ChatListSection = {
  rows: readonly {
    /** The value returned when it is chosen, unique in the list. */
    id: string;
    title: string;
    description?: string | null;
  }[];
  /** Needed where there are several sections. */
  title?: string | null;
};

export type ChatProductSection = { title: string; product_retailer_ids: readonly string[] };

/** A message with buttons, a list, a link, a flow or products. */
export type ChatInteractive =
  | {
      type: "button";
      body: string;
      buttons: readonly {
        /** The value returned when it is pressed, unique among the buttons. */
        id: string;
        title: string;
      }[];
      header?:
        | (
            | { type: "text"; text: string | number | boolean }
            | ({
                type: "image";
                /**
                 * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
                 * `id`.
                 */
                link?: string | null;
                /** The provider's id of uploaded media. Either this or `link`. */
                id?: string | null;
              } & ({ link: string } | { id: string }))
            | ({
                type: "video";
                /**
                 * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
                 * `id`.
                 */
                link?: string | null;
                /** The provider's id of uploaded media. Either this or `link`. */
                id?: string | null;
              } & ({ link: string } | { id: string }))
            | ({
                type: "document";
                /**
                 * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
                 * `id`.
                 */
                link?: string | null;
                /** The provider's id of uploaded media. Either this or `link`. */
                id?: string | null;
                /** Its name on the phone. */
                filename?: string | null;
              } & ({ link: string } | { id: string }))
          )
        | null;
      footer?: string | null;
    }
  | {
      type: "list";
      body: string;
      /** The label of the button that opens the list. */
      button: string;
      /** With at most 10 rows in all. */
      sections: readonly ChatListSection[];
      header?: { type: "text"; text: string | number | boolean } | null;
      footer?: string | null;
    }
  | {
      type: "cta_url";
      body: string;
      /** The button's label. */
      display_text: string;
      /** The https address that it opens; in a message with a `pass`, also the pass's link. */
      url: string;
      header?:
        | (
            | { type: "text"; text: string | number | boolean }
            | ({
                type: "image";
                /**
                 * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
                 * `id`.
                 */
                link?: string | null;
                /** The provider's id of uploaded media. Either this or `link`. */
                id?: string | null;
              } & ({ link: string } | { id: string }))
            | ({
                type: "video";
                /**
                 * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
                 * `id`.
                 */
                link?: string | null;
                /** The provider's id of uploaded media. Either this or `link`. */
                id?: string | null;
              } & ({ link: string } | { id: string }))
            | ({
                type: "document";
                /**
                 * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
                 * `id`.
                 */
                link?: string | null;
                /** The provider's id of uploaded media. Either this or `link`. */
                id?: string | null;
                /** Its name on the phone. */
                filename?: string | null;
              } & ({ link: string } | { id: string }))
          )
        | null;
      footer?: string | null;
    }
  | {
      type: "flow";
      body: string;
      /** The provider's id of the flow. */
      flow_id: string;
      /** The button's label. */
      flow_cta: string;
      header?:
        | (
            | { type: "text"; text: string | number | boolean }
            | ({
                type: "image";
                /**
                 * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
                 * `id`.
                 */
                link?: string | null;
                /** The provider's id of uploaded media. Either this or `link`. */
                id?: string | null;
              } & ({ link: string } | { id: string }))
            | ({
                type: "video";
                /**
                 * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
                 * `id`.
                 */
                link?: string | null;
                /** The provider's id of uploaded media. Either this or `link`. */
                id?: string | null;
              } & ({ link: string } | { id: string }))
            | ({
                type: "document";
                /**
                 * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
                 * `id`.
                 */
                link?: string | null;
                /** The provider's id of uploaded media. Either this or `link`. */
                id?: string | null;
                /** Its name on the phone. */
                filename?: string | null;
              } & ({ link: string } | { id: string }))
          )
        | null;
      footer?: string | null;
      /** Comes back with the answers. */
      flow_token?: string | null;
      flow_action?: "navigate" | "data_exchange" | null;
      /** The screen that it begins with. */
      screen?: string | null;
      /** The data of that screen: up to 16 KiB. */
      data?: JsonObject | null;
      mode?: "published" | "draft" | null;
    }
  | { type: "location_request_message"; body: string; footer?: string | null }
  | {
      type: "product";
      /** The provider's id of the catalogue. */
      catalog_id: string;
      /** Your id of a product in the catalogue (SKU). */
      product_retailer_id: string;
      body?: string | null;
      footer?: string | null;
    }
  | {
      type: "product_list";
      header: { type: "text"; text: string | number | boolean };
      body: string;
      /** The provider's id of the catalogue. */
      catalog_id: string;
      /** With at most 30 products in all. */
      sections: readonly ChatProductSection[];
      footer?: string | null;
    }
  | {
      type: "catalog_message";
      body: string;
      footer?: string | null;
      /** The product whose picture is shown; by default the first. */
      product_retailer_id?: string | null;
    }
  | {
      /** A type of the provider's. */
      type: string;
      /** Its action, which reaches the provider unchanged: up to 16 KiB. */
      action: JsonObject;
      header?:
        | (
            | { type: "text"; text: string | number | boolean }
            | ({
                type: "image";
                /**
                 * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
                 * `id`.
                 */
                link?: string | null;
                /** The provider's id of uploaded media. Either this or `link`. */
                id?: string | null;
              } & ({ link: string } | { id: string }))
            | ({
                type: "video";
                /**
                 * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
                 * `id`.
                 */
                link?: string | null;
                /** The provider's id of uploaded media. Either this or `link`. */
                id?: string | null;
              } & ({ link: string } | { id: string }))
            | ({
                type: "document";
                /**
                 * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
                 * `id`.
                 */
                link?: string | null;
                /** The provider's id of uploaded media. Either this or `link`. */
                id?: string | null;
                /** Its name on the phone. */
                filename?: string | null;
              } & ({ link: string } | { id: string }))
          )
        | null;
      body?: string | null;
      footer?: string | null;
    };

/**
 * Values of `{{1}}`, `{{2}}`, … in order, or an object of values by name for a template whose placeholders have
 * names. Numbers, digit by digit as they are sent, and booleans become text. Not empty, without line breaks,
 * tabs or other control characters, and with at most four blanks in a row: the provider takes no others. An
 * object is an amount of money or a time.
 */
export type ChatParams =
  | readonly (
      | (string | number | boolean)
      | {
          type: "currency";
          /** How it is written where the phone has no form of its own. */
          fallback_value: string;
          /** ISO 4217. */
          code: string;
          /** The amount times 1,000: 12500 is 12.50. */
          amount_1000: number;
        }
      | {
          type: "date_time";
          /** How it is written where the phone has no form of its own. */
          fallback_value: string;
        }
    )[]
  | {
      readonly [name: string]:
        | (string | number | boolean)
        | {
            type: "currency";
            /** How it is written where the phone has no form of its own. */
            fallback_value: string;
            /** ISO 4217. */
            code: string;
            /** The amount times 1,000: 12500 is 12.50. */
            amount_1000: number;
          }
        | {
            type: "date_time";
            /** How it is written where the phone has no form of its own. */
            fallback_value: string;
          };
    };

/** The value for the template's header. It takes precedence over the alias's. */
export type ChatHeader =
  | {
      type: "text";
      /** The value of the header's one placeholder. */
      text: string | number | boolean;
      /** The placeholder's name, where it has one. */
      parameter_name?: string | null;
    }
  | ({
      type: "image";
      /**
       * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
       * `id`.
       */
      link?: string | null;
      /** The provider's id of uploaded media. Either this or `link`. */
      id?: string | null;
    } & ({ link: string } | { id: string }))
  | ({
      type: "video";
      /**
       * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
       * `id`.
       */
      link?: string | null;
      /** The provider's id of uploaded media. Either this or `link`. */
      id?: string | null;
    } & ({ link: string } | { id: string }))
  | ({
      type: "document";
      /**
       * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
       * `id`.
       */
      link?: string | null;
      /** The provider's id of uploaded media. Either this or `link`. */
      id?: string | null;
      /** Its name on the phone. */
      filename?: string | null;
    } & ({ link: string } | { id: string }))
  | { type: "location"; latitude: number; longitude: number; name?: string | null; address?: string | null }
  | {
      type: "product";
      /** Your id of a product in the catalogue (SKU). */
      product_retailer_id: string;
      /** The provider's id of the catalogue. */
      catalog_id?: string | null;
    };

export type ChatButton =
  | {
      /** The button's place in the template, from 0. */
      index: number;
      sub_type: "quick_reply" | "url" | "copy_code";
      /**
       * `quick_reply`: what comes back when it is pressed (at most 256 characters). `url`: what follows the template's
       * address (2000). `copy_code`: the code (20).
       */
      value: string | number | boolean;
    }
  | {
      /** The button's place in the template, from 0. */
      index: number;
      sub_type: "flow";
      /** The flow's token. */
      value?: (string | number | boolean) | null;
      /** The data of the flow's first screen: up to 16 KiB. */
      data?: JsonObject | null;
    }
  | {
      /** The button's place in the template, from 0. */
      index: number;
      sub_type: "catalog";
      /** The product whose picture is shown; by default the first. */
      value?: (string | number | boolean) | null;
    }
  | {
      /** The button's place in the template, from 0. */
      index: number;
      sub_type: "mpm";
      /** The product whose picture is shown. */
      value: string | number | boolean;
      /** With at most 30 products in all. */
      sections: readonly ChatProductSection[];
    }
  | {
      /** The button's place in the template, from 0. */
      index: number;
      /** A type of the provider's. */
      sub_type: string;
      /** Its parameters, which reach the provider unchanged: up to 16 KiB. */
      parameters: readonly JsonObject[];
    };

export type ChatCard = {
  header:
    | ({
        type: "image";
        /**
         * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
         * `id`.
         */
        link?: string | null;
        /** The provider's id of uploaded media. Either this or `link`. */
        id?: string | null;
      } & ({ link: string } | { id: string }))
    | ({
        type: "video";
        /**
         * An https address that the provider fetches the media from; letters beyond ASCII are escaped. Either this or
         * `id`.
         */
        link?: string | null;
        /** The provider's id of uploaded media. Either this or `link`. */
        id?: string | null;
      } & ({ link: string } | { id: string }))
    | {
        type: "product";
        /** Your id of a product in the catalogue (SKU). */
        product_retailer_id: string;
        /** The provider's id of the catalogue. */
        catalog_id?: string | null;
      };
  params?: ChatParams | null;
  /** Values for the template's buttons; at most one entry per button. */
  buttons?: readonly ChatButton[] | null;
};

/** Values for a template that counts down to an offer's end. */
export type ChatOffer = {
  /** When the offer ends: date, time and zone in ISO 8601. */
  expires_at: string;
};

export type ChatSend = {
  /**
   * International format: digits only, with the country's code and without a plus sign. Either this or
   * `recipient`.
   */
  phone_number?: string | null;
  /**
   * The provider's id of a person, as `user_id` of a message that came in: people with a username can hide their
   * number. Either this or `phone_number`.
   */
  recipient?: string | null;
  /**
   * An alias of the tenant's, or else the provider's exact name of the template. Either this or a message without
   * a template.
   */
  template_id?: string | null;
  /** The template's language. By default the alias's, or else `es`. */
  language_code?: string | null;
  params?: ChatParams | null;
  header?: ChatHeader | null;
  /** Values for the template's buttons; at most one entry per button. */
  buttons?: readonly ChatButton[] | null;
  /** Values for the cards of a carousel, one entry per card. All cards have the same kind of header and of buttons. */
  cards?: readonly ChatCard[] | null;
  limited_time_offer?: ChatOffer | null;
  /**
   * Components of kinds that no other member fills, with the `type` and all else as the provider has them: they
   * reach it unchanged. Up to 16 KiB.
   */
  components?: readonly ({ type: string } & JsonObject)[] | null;
  text?: ChatText | null;
  media?: ChatMedia | null;
  location?: ChatLocation | null;
  /** Cards of people. All other members reach the provider unchanged. Up to 16 KiB. */
  contacts?: readonly ({ name: { formatted_name: string } & JsonObject } & JsonObject)[] | null;
  reaction?: ChatReaction | null;
  interactive?: ChatInteractive | null;
  /** The provider's id of the message that this one quotes. */
  reply_to?: string | null;
  pass?: CarriedPass | null;
  /**
   * When it is to be sent, at most 30 days ahead: date, time and zone in ISO 8601. A time that is past or less
   * than a second ahead: at once.
   */
  scheduled_at?: string | null;
  fallback?: Fallbacks | null;
} & ({ phone_number: string } | { recipient: string }) &
  (
    | { template_id: string }
    | { text: ChatText }
    | { media: ChatMedia }
    | { location: ChatLocation }
    | {
        /** Cards of people. All other members reach the provider unchanged. Up to 16 KiB. */
        contacts: readonly ({ name: { formatted_name: string } & JsonObject } & JsonObject)[];
      }
    | { reaction: ChatReaction }
    | { interactive: ChatInteractive }
  );

export type ChatSendInBatch = {
  /**
   * International format: digits only, with the country's code and without a plus sign. Either this or
   * `recipient`.
   */
  phone_number?: string | null;
  /**
   * The provider's id of a person, as `user_id` of a message that came in: people with a username can hide their
   * number. Either this or `phone_number`.
   */
  recipient?: string | null;
  /**
   * An alias of the tenant's, or else the provider's exact name of the template. Either this or a message without
   * a template.
   */
  template_id?: string | null;
  /** The template's language. By default the alias's, or else `es`. */
  language_code?: string | null;
  params?: ChatParams | null;
  header?: ChatHeader | null;
  /** Values for the template's buttons; at most one entry per button. */
  buttons?: readonly ChatButton[] | null;
  /** Values for the cards of a carousel, one entry per card. All cards have the same kind of header and of buttons. */
  cards?: readonly ChatCard[] | null;
  limited_time_offer?: ChatOffer | null;
  /**
   * Components of kinds that no other member fills, with the `type` and all else as the provider has them: they
   * reach it unchanged. Up to 16 KiB.
   */
  components?: readonly ({ type: string } & JsonObject)[] | null;
  text?: ChatText | null;
  media?: ChatMedia | null;
  location?: ChatLocation | null;
  /** Cards of people. All other members reach the provider unchanged. Up to 16 KiB. */
  contacts?: readonly ({ name: { formatted_name: string } & JsonObject } & JsonObject)[] | null;
  reaction?: ChatReaction | null;
  interactive?: ChatInteractive | null;
  /** The provider's id of the message that this one quotes. */
  reply_to?: string | null;
  /**
   * When it is to be sent, at most 30 days ahead: date, time and zone in ISO 8601. A time that is past or less
   * than a second ahead: at once.
   */
  scheduled_at?: string | null;
};

export type ChatSendBatch = { messages: readonly ChatSendInBatch[]; defaults?: ChatSendInBatch | null };

export type Alias = {
  alias: string;
  /** The provider's name of the template. */
  meta_name: string;
  /** Null: the service's default, `es`. */
  language_code: string | null;
  /** The meaning of each position. */
  params: readonly string[];
  header: {
    type: "image" | "video" | "document";
    /** An https address. Either this or `id`. */
    link?: string;
    /** The provider's id of uploaded media. */
    id?: string;
    /** Documents only. */
    filename?: string;
  } | null;
};

export type AliasList = { aliases: readonly Alias[] };

export type ChatTemplate = {
  name: string;
  language: string;
  /** In the provider's words: `APPROVED`, `PENDING`, `PAUSED`, `REJECTED`, … */
  status: string;
  category: string | null;
  /** `POSITIONAL` or `NAMED`. */
  parameter_format: string | null;
  /** The provider's word for what is in the header: `TEXT`, `IMAGE`, …; null: there is none. */
  header_format: string | null;
  /** The placeholders of a header of text. */
  header_params: readonly string[];
  /** The placeholders of the body, each once; null: it is not understood. */
  body_params: readonly string[] | null;
  /** Places of the buttons that a message must fill. */
  filled_buttons: readonly number[];
};

export type ChatTemplates = {
  /** The provider's id of the account; null: the credentials name none. */
  account_id: string | null;
  /** Null: the list was never read. */
  read_at: string | null;
  /** Whether these are all. */
  complete: boolean;
  /** By name; one entry a language. */
  templates: readonly ChatTemplate[];
};

export type IncomingMessage = {
  /** The provider's. */
  message_id: string;
  /** The number that it came to. */
  phone_number_id: string | null;
  /** The writer's number; null: hidden behind a username. */
  from: string | null;
  /** The provider's id of the writer. */
  user_id: string | null;
  username: string | null;
  /** The writer's own name for itself. */
  name: string | null;
  /**
   * The provider's word: `text`, `image`, `button`, …; `account.updated` and `message.unknown` are parts of its
   * calls that are no messages.
   */
  type: string;
  received_at: string;
  /** As the provider sent it; null where that was too long to be kept. */
  content: JsonObject | null;
};

export type IncomingMessagePage = {
  messages: readonly IncomingMessage[];
  /** Pass it as `cursor`; null on the last page. */
  next_cursor: string | null;
};

export type WebhookReceived = { status: "received" };

export type WhatsappWebhook = {
  object?: string;
  entry?: readonly ({
    id?: string;
    changes?: readonly ({
      field?: string;
      value?: {
        metadata?: { phone_number_id?: string } & JsonObject;
        contacts?: readonly ({
          wa_id?: string;
          user_id?: string;
          profile?: { name?: string; username?: string } & JsonObject;
        } & JsonObject)[];
        statuses?: readonly ({
          id?: string;
          status?: string;
          biz_opaque_callback_data?: string;
          errors?: readonly ({
            code?: number;
            title?: string;
            message?: string;
            error_data?: { details?: string } & JsonObject;
          } & JsonObject)[];
        } & JsonObject)[];
        messages?: readonly ({ id?: string; from?: string; from_user_id?: string; type?: string } & JsonObject)[];
      } & JsonObject;
    } & JsonObject)[];
  } & JsonObject)[];
} & JsonObject;

export type ApplePassRequest = {
  pass_type: "apple";
  pass_data: ApplePassData;
  /** Counts as absent. */
  template_id?: null;
  /**
   * When it is to be sent, at most 30 days ahead: date, time and zone in ISO 8601. A time that is past or less
   * than a second ahead: at once.
   */
  scheduled_at?: string | null;
};

export type GooglePassRequest = {
  pass_type: "google";
  pass_data: GooglePassData;
  /** Counts as absent. */
  template_id?: null;
  /**
   * When it is to be sent, at most 30 days ahead: date, time and zone in ISO 8601. A time that is past or less
   * than a second ahead: at once.
   */
  scheduled_at?: string | null;
};

export type TemplatePassRequest = {
  /** Slug of a registered wallet template. */
  template_id: string;
  /** The template's, or left out. */
  pass_type?: "apple" | "google" | null;
  /** The members that the template leaves open, or that differ from it. */
  pass_data?: (ApplePassPart | GooglePassPart) | null;
  /**
   * When it is to be sent, at most 30 days ahead: date, time and zone in ISO 8601. A time that is past or less
   * than a second ahead: at once.
   */
  scheduled_at?: string | null;
};

export type PassRequest = ApplePassRequest | GooglePassRequest | TemplatePassRequest;

export type UpdatingPass = {
  pass_id: string;
  job_id: string;
  status: "updating";
  /** True: the pass is so already and keeps its version, and who was told of it is not told again. */
  unchanged?: boolean;
};

/** Absent members stay unchanged; null removes one. */
export type ApplePassChange = {
  /** Used once. An update cannot change it. */
  serial_number?: string;
  organization_name?: string;
  description?: string;
  style?: "eventTicket" | "boardingPass" | "coupon" | "storeCard" | "generic" | "posterGeneric" | null;
  /** boardingPass only. */
  transit_type?:
    | "PKTransitTypeGeneric"
    | "PKTransitTypeAir"
    | "PKTransitTypeBoat"
    | "PKTransitTypeBus"
    | "PKTransitTypeTrain"
    | null;
  header_fields?: readonly PassFieldPart[] | null;
  primary_fields?: readonly PassFieldPart[] | null;
  secondary_fields?: readonly PassFieldPart[] | null;
  auxiliary_fields?: readonly PassFieldPart[] | null;
  back_fields?: readonly PassFieldPart[] | null;
  additional_info_fields?: readonly PassFieldPart[] | null;
  footer_fields?: readonly PassFieldPart[] | null;
  /** PNG in base64, 29x29; a placeholder where there is none. */
  icon_base64?: string | null;
  /** PNG in base64. */
  icon_2x_base64?: string | null;
  /** PNG in base64. */
  icon_3x_base64?: string | null;
  /** PNG in base64, 160x50. */
  logo_base64?: string | null;
  /** PNG in base64. */
  logo_2x_base64?: string | null;
  /** PNG in base64. */
  logo_3x_base64?: string | null;
  /** PNG in base64, 375x144. */
  strip_base64?: string | null;
  /** PNG in base64. */
  strip_2x_base64?: string | null;
  /** PNG in base64. */
  strip_3x_base64?: string | null;
  /** PNG in base64, 90x90. */
  thumbnail_base64?: string | null;
  /** PNG in base64. */
  thumbnail_2x_base64?: string | null;
  /** PNG in base64. */
  thumbnail_3x_base64?: string | null;
  /** PNG in base64. */
  background_base64?: string | null;
  /** PNG in base64. */
  background_2x_base64?: string | null;
  /** PNG in base64. */
  background_3x_base64?: string | null;
  /** PNG in base64. */
  footer_base64?: string | null;
  /** PNG in base64. */
  footer_2x_base64?: string | null;
  /** PNG in base64. */
  footer_3x_base64?: string | null;
  /** PNG in base64, 358x448, of poster passes. */
  artwork_base64?: string | null;
  /** PNG in base64. */
  artwork_2x_base64?: string | null;
  /** PNG in base64. */
  artwork_3x_base64?: string | null;
  /** PNG in base64, up to 126x30, of poster passes. */
  primary_logo_base64?: string | null;
  /** PNG in base64. */
  primary_logo_2x_base64?: string | null;
  /** PNG in base64. */
  primary_logo_3x_base64?: string | null;
  /** PNG in base64, up to 135x12, of poster passes. */
  secondary_logo_base64?: string | null;
  /** PNG in base64. */
  secondary_logo_2x_base64?: string | null;
  /** PNG in base64. */
  secondary_logo_3x_base64?: string | null;
  /** PNG in base64. */
  venue_map_base64?: string | null;
  /** PNG in base64. */
  venue_map_2x_base64?: string | null;
  /** PNG in base64. */
  venue_map_3x_base64?: string | null;
  /** PNG in base64, 150x40, of the sign-up form. */
  personalization_logo_base64?: string | null;
  /** PNG in base64. */
  personalization_logo_2x_base64?: string | null;
  /** PNG in base64. */
  personalization_logo_3x_base64?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  background_color?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  foreground_color?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  label_color?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  strip_color?: string | null;
  /** `rgb(11, 31, 58)` or `#0B1F3A`. */
  footer_background_color?: string | null;
  barcodes?: readonly PassBarcode[] | null;
  /** With time and zone, such as 2026-12-31T23:59:00+01:00. */
  relevant_date?: string | null;
  relevant_dates?: readonly PassDates[] | null;
  /** With time and zone, such as 2026-12-31T23:59:00+01:00. */
  expiration_date?: string | null;
  locations?: readonly PassLocation[] | null;
  beacons?: readonly PassBeacon[] | null;
  max_distance?: number | null;
  /** eventTicket and boardingPass only. */
  grouping_identifier?: string | null;
  voided?: boolean | null;
  sharing_prohibited?: boolean | null;
  suppress_strip_shine?: boolean | null;
  suppress_header_darkening?: boolean | null;
  use_automatic_colors?: boolean | null;
  logo_text?: string | null;
  event_logo_text?: string | null;
  logo_symbol_name?: string | null;
  business_chat_identifier?: string | null;
  transit_provider_email?: string | null;
  transit_provider_phone_number?: string | null;
  contact_venue_email?: string | null;
  contact_venue_phone_number?: string | null;
  accessibility_url?: string | null;
  add_on_url?: string | null;
  bag_policy_url?: string | null;
  contact_venue_website?: string | null;
  directions_information_url?: string | null;
  merchandise_url?: string | null;
  order_food_url?: string | null;
  parking_information_url?: string | null;
  purchase_parking_url?: string | null;
  sell_url?: string | null;
  transfer_url?: string | null;
  transit_information_url?: string | null;
  change_seat_url?: string | null;
  entertainment_url?: string | null;
  management_url?: string | null;
  purchase_additional_baggage_url?: string | null;
  purchase_lounge_access_url?: string | null;
  purchase_wifi_url?: string | null;
  register_service_animal_url?: string | null;
  report_lost_bag_url?: string | null;
  request_wheelchair_url?: string | null;
  transit_provider_website_url?: string | null;
  upgrade_url?: string | null;
  /** Needs `associated_store_identifiers` beside it. */
  app_launch_url?: string | null;
  associated_store_identifiers?: readonly number[] | null;
  auxiliary_store_identifiers?: readonly number[] | null;
  /** As Apple's pass.json has it. */
  user_info?: JsonObject | null;
  /** As Apple's pass.json has it. */
  semantics?: JsonObject | null;
  /** Only with a certificate that Apple issued for NFC. */
  nfc?: {
    message: string;
    /** Base64 of the SubjectPublicKeyInfo of an ECDH key on P-256. */
    encryptionPublicKey: string;
    requiresAuthentication?: boolean | null;
  } | null;
  /** Such as `posterEventTicket` for an eventTicket, or `semanticBoardingPass` for a boardingPass. */
  preferred_style_schemes?: readonly string[] | null;
  featured_actions?: readonly PassFeaturedAction[] | null;
  upcoming_pass_information?: readonly PassUpcoming[] | null;
  /**
   * Wallet asks the holder for these before it adds the pass, and the webhook event `pass.personalized` has what
   * was entered. For a storeCard with `nfc` and a `personalization_logo` of 2x or 3x.
   */
  personalization?: {
    requiredPersonalizationFields: readonly string[];
    description: string;
    termsAndConditions?: string | null;
  } | null;
  /**
   * By language, such as `de` or `pt-BR`: what is shown in place of the pass's own texts and images. An update
   * replaces what it names of a language, and null takes a language off. At most 50.
   */
  localizations?: { readonly [name: string]: PassLocalization | null } | null;
  /** Members of Apple's pass.json that are not known here, copied into it as they are; at most 65536 characters. */
  extra?: JsonObject | null;
};

/**
 * Members of the object stand in `object_data` or beside it. Absent members stay unchanged; null removes one.
 * The ids and the kind cannot change.
 */
export type GooglePassChange = {
  /** `<issuer_id>.<class_name>`, not another tenant's. */
  class_id?: string;
  /** Empty counts as absent. */
  class_type?: "generic" | "eventTicket" | "loyalty" | "offer" | "giftCard" | "transit" | "flight" | "" | null;
  /** `<issuer_id>.<object_name>`, used once. */
  object_id?: string;
  object_data?: GooglePassObject | null;
  state?: "ACTIVE" | "COMPLETED" | "EXPIRED" | "INACTIVE" | null;
  ticketHolderName?: string | null;
  ticketNumber?: string | null;
  ticketType?: LocalizedText | null;
  cardTitle?: LocalizedText | null;
  header?: LocalizedText | null;
  subheader?: LocalizedText | null;
  /** Such as #0B1F3A. */
  hexBackgroundColor?: string | null;
  barcode?: ({ type: string; value: string } & JsonObject) | null;
  textModulesData?:
    | readonly ({
        /** Unique in the object. */
        id?: string | null;
        header?: string | null;
        body?: string | null;
      } & JsonObject)[]
    | null;
  linkedObjectIds?: readonly string[] | null;
  linkedOfferIds?: readonly string[] | null;
  loyaltyPoints?: GooglePoints | null;
  secondaryLoyaltyPoints?: GooglePoints | null;
  /** Required of a giftCard. */
  cardNumber?: string | null;
  balance?: GoogleMoney | null;
  /** Required of a transit pass, such as ONE_WAY or ROUND_TRIP. */
  tripType?: string | null;
  /** Required of a flight. */
  passengerName?: string | null;
  /** Required of a flight. */
  reservationInfo?: JsonObject | null;
} & JsonObject;

export type PassUpdate = {
  /** The changes, in the form of its creation. */
  pass_data: ApplePassChange | GooglePassChange;
  /** Google: shown to the pass's holders. */
  notify_message?: string | null;
  /** Why the pass changes; kept in its history. */
  notification_kind?: "match.upcoming" | "match.result.recorded" | "player.advanced" | "tournament.finished" | null;
};

export type ApplePassStatus = {
  pass_id: string;
  pass_type: "apple";
  /** 1 from the start, one more with every update. */
  version: number;
  status: "active" | "expired" | "voided";
  installed_devices: number;
  is_installed: boolean;
};

export type GooglePassStatus = {
  pass_id: string;
  pass_type: "google";
  /** 1 from the start, one more with every update. */
  version: number;
  /** `google_status` in lower case. */
  status: "active" | "completed" | "expired" | "inactive" | "not_found";
  google_status: "ACTIVE" | "COMPLETED" | "EXPIRED" | "INACTIVE" | "not_found";
  /** At least one user saved the pass. */
  has_users: boolean;
  /**
   * Somebody has it, by what Google has told of saves and removals; of a class that Google does not tell of, by
   * `has_users`.
   */
  is_installed: boolean;
};

export type PassStatus = ApplePassStatus | GooglePassStatus;

export type PassLink = {
  /** Whoever has it has the passes. */
  download_url: string;
  /** The last part of the address, for buttons whose template has the rest. */
  download_token: string;
};

export type GoogleClassChange = { status: "created" | "updated"; class_id: string };

export type GoogleImage = {
  sourceUri?: ({ uri: string } & JsonObject) | null;
  /** Of an image that Google was given before, in place of the other. */
  privateImageId?: string | null;
} & JsonObject &
  ({ sourceUri: JsonObject } | { privateImageId: string });

export type NewEventTicketClass = {
  class_type: "eventTicket";
  /** An `EventTicketClass` of Google's REST API. */
  class_data: {
    /** `<issuer_id>.<class_name>`. */
    id: string;
    issuerName: string;
    eventName: LocalizedText;
    venue?: ({ name: LocalizedText; address: LocalizedText } & JsonObject) | null;
    dateTime?:
      | ({
          /** Without an offset it is the venue's own time. */
          doorsOpen?: string | null;
          /** Without an offset it is the venue's own time. */
          start?: string | null;
          /** Without an offset it is the venue's own time. */
          end?: string | null;
        } & JsonObject)
      | null;
    /** Such as #0B1F3A. */
    hexBackgroundColor?: string | null;
    logo?: GoogleImage | null;
    heroImage?: GoogleImage | null;
    reviewStatus?: "DRAFT" | "UNDER_REVIEW" | null;
  } & JsonObject;
};

export type NewGenericClass = {
  class_type: "generic";
  /** A `GenericClass` of Google's REST API. It has no `reviewStatus`. */
  class_data: {
    /** `<issuer_id>.<class_name>`. */
    id: string;
  } & JsonObject;
};

export type NewLoyaltyClass = {
  class_type: "loyalty";
  /** A `LoyaltyClass` of Google's REST API. */
  class_data: {
    /** `<issuer_id>.<class_name>`. */
    id: string;
    issuerName: string;
    programName: string;
    programLogo: GoogleImage;
    /** Such as #0B1F3A. */
    hexBackgroundColor?: string | null;
    heroImage?: GoogleImage | null;
    reviewStatus?: "DRAFT" | "UNDER_REVIEW" | null;
  } & JsonObject;
};

export type NewOfferClass = {
  class_type: "offer";
  /** An `OfferClass` of Google's REST API. */
  class_data: {
    /** `<issuer_id>.<class_name>`. */
    id: string;
    issuerName: string;
    title: string;
    provider: string;
    /** Such as INSTORE, ONLINE or BOTH. */
    redemptionChannel: string;
    /** Such as #0B1F3A. */
    hexBackgroundColor?: string | null;
    heroImage?: GoogleImage | null;
    titleImage?: GoogleImage | null;
    reviewStatus?: "DRAFT" | "UNDER_REVIEW" | null;
  } & JsonObject;
};

export type NewGiftCardClass = {
  class_type: "giftCard";
  /** A `GiftCardClass` of Google's REST API. */
  class_data: {
    /** `<issuer_id>.<class_name>`. */
    id: string;
    issuerName: string;
    programLogo?: GoogleImage | null;
    /** Such as #0B1F3A. */
    hexBackgroundColor?: string | null;
    heroImage?: GoogleImage | null;
    reviewStatus?: "DRAFT" | "UNDER_REVIEW" | null;
  } & JsonObject;
};

export type NewTransitClass = {
  class_type: "transit";
  /** A `TransitClass` of Google's REST API. */
  class_data: {
    /** `<issuer_id>.<class_name>`. */
    id: string;
    issuerName: string;
    /** Such as BUS, RAIL, TRAM, FERRY or OTHER. */
    transitType: string;
    logo: GoogleImage;
    /** Such as #0B1F3A. */
    hexBackgroundColor?: string | null;
    heroImage?: GoogleImage | null;
    reviewStatus?: "DRAFT" | "UNDER_REVIEW" | null;
  } & JsonObject;
};

export type GoogleAirport = { airportIataCode: string } & JsonObject;

/** One of the two codes. */
export type GoogleCarrier = { carrierIataCode?: string | null; carrierIcaoCode?: string | null } & JsonObject &
  ({ carrierIataCode: string } | { carrierIcaoCode: string });

export type GoogleFlightHeader = {
  flightNumber: string;
  carrier: GoogleCarrier;
  operatingCarrier?: GoogleCarrier | null;
} & JsonObject;

export type NewFlightClass = {
  class_type: "flight";
  /** A `FlightClass` of Google's REST API. */
  class_data: {
    /** `<issuer_id>.<class_name>`. */
    id: string;
    issuerName: string;
    origin: GoogleAirport;
    destination: GoogleAirport;
    flightHeader: GoogleFlightHeader;
    /** The airport's own time, without an offset. */
    localScheduledDepartureDateTime: string;
    /** The airport's own time, without an offset. */
    localEstimatedOrActualDepartureDateTime?: string | null;
    /** The airport's own time, without an offset. */
    localBoardingDateTime?: string | null;
    /** The airport's own time, without an offset. */
    localGateClosingDateTime?: string | null;
    /** The airport's own time, without an offset. */
    localScheduledArrivalDateTime?: string | null;
    /** The airport's own time, without an offset. */
    localEstimatedOrActualArrivalDateTime?: string | null;
    /** Such as #0B1F3A. */
    hexBackgroundColor?: string | null;
    heroImage?: GoogleImage | null;
    reviewStatus?: "DRAFT" | "UNDER_REVIEW" | null;
  } & JsonObject;
};

export type NewGoogleClass =
  | NewEventTicketClass
  | NewGenericClass
  | NewLoyaltyClass
  | NewOfferClass
  | NewGiftCardClass
  | NewTransitClass
  | NewFlightClass;

export type EventTicketClassUpdate = {
  class_type: "eventTicket";
  /**
   * The changes. An `EventTicketClass` of Google's REST API. `venue`, `dateTime` keep the members that are left
   * out.
   */
  class_data: {
    /** As in the address. */
    id?: string | null;
    issuerName?: string | null;
    eventName?: LocalizedText | null;
    venue?: ({ name?: LocalizedText | null; address?: LocalizedText | null } & JsonObject) | null;
    dateTime?:
      | ({
          /** Without an offset it is the venue's own time. */
          doorsOpen?: string | null;
          /** Without an offset it is the venue's own time. */
          start?: string | null;
          /** Without an offset it is the venue's own time. */
          end?: string | null;
        } & JsonObject)
      | null;
    /** Such as #0B1F3A. */
    hexBackgroundColor?: string | null;
    logo?: GoogleImage | null;
    heroImage?: GoogleImage | null;
    /** All but DRAFT count as UNDER_REVIEW, so what was read can be given back. */
    reviewStatus?: "DRAFT" | "UNDER_REVIEW" | "APPROVED" | "REJECTED" | null;
  } & JsonObject;
};

export type GenericClassUpdate = {
  class_type: "generic";
  /** The changes. A `GenericClass` of Google's REST API. It has no `reviewStatus`. */
  class_data: {
    /** As in the address. */
    id?: string | null;
  } & JsonObject;
};

export type LoyaltyClassUpdate = {
  class_type: "loyalty";
  /** The changes. A `LoyaltyClass` of Google's REST API. */
  class_data: {
    /** As in the address. */
    id?: string | null;
    issuerName?: string | null;
    programName?: string | null;
    programLogo?: GoogleImage | null;
    /** Such as #0B1F3A. */
    hexBackgroundColor?: string | null;
    heroImage?: GoogleImage | null;
    /** All but DRAFT count as UNDER_REVIEW, so what was read can be given back. */
    reviewStatus?: "DRAFT" | "UNDER_REVIEW" | "APPROVED" | "REJECTED" | null;
  } & JsonObject;
};

export type OfferClassUpdate = {
  class_type: "offer";
  /** The changes. An `OfferClass` of Google's REST API. */
  class_data: {
    /** As in the address. */
    id?: string | null;
    issuerName?: string | null;
    title?: string | null;
    provider?: string | null;
    /** Such as INSTORE, ONLINE or BOTH. */
    redemptionChannel?: string | null;
    /** Such as #0B1F3A. */
    hexBackgroundColor?: string | null;
    heroImage?: GoogleImage | null;
    titleImage?: GoogleImage | null;
    /** All but DRAFT count as UNDER_REVIEW, so what was read can be given back. */
    reviewStatus?: "DRAFT" | "UNDER_REVIEW" | "APPROVED" | "REJECTED" | null;
  } & JsonObject;
};

export type GiftCardClassUpdate = {
  class_type: "giftCard";
  /** The changes. A `GiftCardClass` of Google's REST API. */
  class_data: {
    /** As in the address. */
    id?: string | null;
    issuerName?: string | null;
    programLogo?: GoogleImage | null;
    /** Such as #0B1F3A. */
    hexBackgroundColor?: string | null;
    heroImage?: GoogleImage | null;
    /** All but DRAFT count as UNDER_REVIEW, so what was read can be given back. */
    reviewStatus?: "DRAFT" | "UNDER_REVIEW" | "APPROVED" | "REJECTED" | null;
  } & JsonObject;
};

export type TransitClassUpdate = {
  class_type: "transit";
  /** The changes. A `TransitClass` of Google's REST API. */
  class_data: {
    /** As in the address. */
    id?: string | null;
    issuerName?: string | null;
    /** Such as BUS, RAIL, TRAM, FERRY or OTHER. */
    transitType?: string | null;
    /** Such as #0B1F3A. */
    hexBackgroundColor?: string | null;
    logo?: GoogleImage | null;
    heroImage?: GoogleImage | null;
    /** All but DRAFT count as UNDER_REVIEW, so what was read can be given back. */
    reviewStatus?: "DRAFT" | "UNDER_REVIEW" | "APPROVED" | "REJECTED" | null;
  } & JsonObject;
};

export type GoogleAirportChange = { airportIataCode?: string | null } & JsonObject;

export type GoogleFlightHeaderChange = {
  flightNumber?: string | null;
  carrier?: GoogleCarrier | null;
  operatingCarrier?: GoogleCarrier | null;
} & JsonObject;

export type FlightClassUpdate = {
  class_type: "flight";
  /**
   * The changes. A `FlightClass` of Google's REST API. `origin`, `destination`, `flightHeader` keep the members
   * that are left out.
   */
  class_data: {
    /** As in the address. */
    id?: string | null;
    issuerName?: string | null;
    origin?: GoogleAirportChange | null;
    destination?: GoogleAirportChange | null;
    flightHeader?: GoogleFlightHeaderChange | null;
    /** The airport's own time, without an offset. */
    localScheduledDepartureDateTime?: string | null;
    /** The airport's own time, without an offset. */
    localEstimatedOrActualDepartureDateTime?: string | null;
    /** The airport's own time, without an offset. */
    localBoardingDateTime?: string | null;
    /** The airport's own time, without an offset. */
    localGateClosingDateTime?: string | null;
    /** The airport's own time, without an offset. */
    localScheduledArrivalDateTime?: string | null;
    /** The airport's own time, without an offset. */
    localEstimatedOrActualArrivalDateTime?: string | null;
    /** Such as #0B1F3A. */
    hexBackgroundColor?: string | null;
    heroImage?: GoogleImage | null;
    /** All but DRAFT count as UNDER_REVIEW, so what was read can be given back. */
    reviewStatus?: "DRAFT" | "UNDER_REVIEW" | "APPROVED" | "REJECTED" | null;
  } & JsonObject;
};

export type GoogleClassUpdate =
  | EventTicketClassUpdate
  | GenericClassUpdate
  | LoyaltyClassUpdate
  | OfferClassUpdate
  | GiftCardClassUpdate
  | TransitClassUpdate
  | FlightClassUpdate;

/** A class of Google's REST API, such as an `EventTicketClass`. */
export type GoogleClass = {
  id: string;
  issuerName?: string;
  eventName?: LocalizedText;
  venue?: { name?: LocalizedText; address?: LocalizedText } & JsonObject;
  dateTime?: { doorsOpen?: string; start?: string; end?: string } & JsonObject;
  hexBackgroundColor?: string;
  logo?: GoogleImage;
  heroImage?: GoogleImage;
  reviewStatus?: string;
} & JsonObject;

export type GoogleCallbackReceived = { status: "received" };

export type GoogleCallback = {
  protocolVersion: "ECv2SigningOnly";
  /** Of `signedMessage`, in base64. */
  signature: string;
  /** The key that signed it, and what Google's root keys say of that key. */
  intermediateSigningKey: { signedKey: string; signatures: readonly string[] } & JsonObject;
  /** JSON with `classId`, `objectId`, `eventType` (`save` or `del`), `expTimeMillis` and `nonce`. */
  signedMessage: string;
} & JsonObject;

export type CredentialsStoredWithWarnings = {
  stored: true;
  /** Whether the channel uses them from now on. For e-mail, a sender's domain must be verified as well. */
  used: boolean;
  /** Why they are not used. */
  reason?: string;
  warnings?: readonly string[];
};

export type WalletWebhook = { wallet_webhook_url: string | null };

export type ScheduledJob = { job_id: string; status: "pending"; scheduled_at: string };

export type Reschedule = {
  /**
   * When it is to be sent, at most 30 days ahead: date, time and zone in ISO 8601. A time that is past or less
   * than a second ahead: at once.
   */
  scheduled_at: string;
};

export type CanceledJob = { job_id: string; status: "suppressed" };

export type PassResult = {
  pass_id: string;
  /** For an Apple pass: its current file, in base64. */
  pkpass_base64?: string;
  /** For an Apple pass that came with a message: the public link to its file. */
  download_url?: string;
  /** For a Google pass: the link that saves its current version. */
  save_link?: string;
};

export type EmptyResult = { readonly [name: string]: undefined };

export type FailedJobResult = {
  error: string;
  /** The score of an e-mail that the spam filter stopped. */
  spam_score?: number;
  /** The rules that made the spam score, highest first. */
  spam_rules?: readonly { rule: string; score: number; description: string }[];
};

export type SuppressedResult = {
  reason: "unsubscribed" | "bounced" | "complained" | "manual" | "erased" | "canceled" | "not_needed";
  /** The suppression is for this topic alone; absent: for all messages. */
  topic?: string;
};

export type Job =
  | {
      job_id: string;
      status: "pending" | "running";
      /** It waits for this time; absent: it waits for none. */
      scheduled_at?: string;
      /** While it waits for its time: the message that it is a fallback of. */
      fallback_of?: string;
    }
  | {
      job_id: string;
      status: "success";
      /** The result of an e-mail or a chat message: empty, except for the pass that it carried. */
      result: PassResult | EmptyResult;
    }
  | { job_id: string; status: "failed"; result: FailedJobResult }
  | { job_id: string; status: "suppressed"; result: SuppressedResult };

export type RecipientResult = {
  /** The address in cc or bcc that it is about; absent: the message's `to_address`. */
  recipient?: string;
};

export type OpenedResult = {
  /** A machine did it by itself: a scanner, or a program that loads pictures unread. */
  machine?: true;
  /** The program, where it is known by its name. */
  by?: string;
};

export type ClickedResult = {
  /** Where the click led. */
  url: string;
  /** A machine did it by itself: a scanner, or a program that loads pictures unread. */
  machine?: true;
  /** The program, where it is known by its name. */
  by?: string;
};

export type BouncedResult = {
  /** Reply code (RFC 5321); null: there was none. */
  code: number | null;
  /** Status code (RFC 3463), such as 5.1.1; null: none is known. */
  enhanced_code: string | null;
  /** The answer of the recipient's mail server. */
  diagnostic: string;
  /** The address in cc or bcc that it is about; absent: the message's `to_address`. */
  recipient?: string;
};

export type FailedResult = {
  error: string;
  /** The address in cc or bcc that it is about; absent: the message's `to_address`. */
  recipient?: string;
};

export type SuppressedEventResult = {
  reason: "unsubscribed" | "bounced" | "complained" | "manual" | "erased" | "canceled" | "not_needed";
  /** The address in cc or bcc that it is about; absent: the message's `to_address`. */
  recipient?: string;
  /** The suppression is for this topic alone; absent: for all messages. */
  topic?: string;
};

export type JobEvent =
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      event_type: "sent";
      result: EmptyResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      event_type: "delivered";
      result: RecipientResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      event_type: "read";
      result: EmptyResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      event_type: "opened";
      result: OpenedResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      event_type: "clicked";
      result: ClickedResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      event_type: "bounced";
      result: BouncedResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      event_type: "complained";
      result: EmptyResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      event_type: "failed";
      result: FailedResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      event_type: "suppressed";
      result: SuppressedEventResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    };

export type JobEvents = { job_id: string; events: readonly JobEvent[] };

export type ListedJob = {
  job_id: string;
  channel: "email" | "whatsapp" | "wallet";
  status: "pending" | "running" | "success" | "failed" | "suppressed";
  /** Tries that have ended and count, the last one included; a retry by an operator starts again at zero. */
  attempts: number;
  created_at: string;
  finished_at?: string;
  /** It waits for this try. */
  next_attempt_at?: string;
  /** Why it failed, as the tenant sees it. */
  error?: string;
  /** Why it failed, in one word for programs. */
  failure_class?:
    | "recipient"
    | "mailbox_full"
    | "domain"
    | "refused"
    | "authentication"
    | "throttled"
    | "content"
    | "sender"
    | "unreachable"
    | "purged"
    | "other";
  /** The template that it was made from. */
  template?: string;
  /** For an e-mail: the part after the @. */
  recipient_domain?: string;
  /** As it was sent with them. */
  tags?: readonly { name: string; value: string }[];
};

export type JobPage = {
  jobs: readonly ListedJob[];
  /** Pass it as `cursor`; null on the last page. */
  next_cursor: string | null;
  /** More jobs are waiting in the queue than are looked through: older ones may be missing. */
  incomplete: boolean;
};

export type JobAttempt = {
  at: string;
  /**
   * A snooze was a wait that cost no attempt. After an uncertain one it is unknown whether the mail server or
   * provider has the message: it had all of it and did not answer.
   */
  outcome: "retry" | "snooze" | "uncertain" | "sent" | "failed";
  /** The mail server or provider that was asked. */
  relay?: string;
  /** The reply, without the recipient; or why it was not asked. */
  reply?: string;
  /** How long it took, in milliseconds. */
  ms?: number;
  /** Why it did not succeed. */
  failure_class?:
    | "recipient"
    | "mailbox_full"
    | "domain"
    | "refused"
    | "authentication"
    | "throttled"
    | "content"
    | "sender"
    | "unreachable"
    | "purged"
    | "other";
  next_attempt_at?: string;
};

export type JobExplanation = {
  job_id: string;
  status: "pending" | "running" | "success" | "failed" | "suppressed";
  /** Null: it has ended, or its delivery is under way. */
  waits_for:
    | "turn"
    | "plan_pace"
    | "reputation"
    | "warm_up"
    | "destination_pace"
    | "throttled"
    | "relay_away"
    | "schedule"
    | "retry"
    | "paused"
    | null;
  /** The same for people. */
  detail: string;
  /** The latest tries, oldest first; at most 20. */
  attempts: readonly JobAttempt[];
  /** Why it failed, in one word for programs. */
  failure_class?:
    | "recipient"
    | "mailbox_full"
    | "domain"
    | "refused"
    | "authentication"
    | "throttled"
    | "content"
    | "sender"
    | "unreachable"
    | "purged"
    | "other";
  /** When it is tried next, as far as that can be foreseen. */
  estimated_at?: string;
  /** Jobs of the tenant on this channel that are before it. */
  ahead?: number;
};

export type OperatorJob = {
  job_id: string;
  channel: "email" | "whatsapp" | "wallet";
  status: "pending" | "running" | "success" | "failed" | "suppressed";
  /** Tries that have ended and count, the last one included; a retry by an operator starts again at zero. */
  attempts: number;
  created_at: string;
  /**
   * The outcome, as far as it is known: a job with the status `success` is `sent`, or as reported after that
   * (`failed_later`: it was accepted, and then given up). For a message with copies, the outcome of its
   * `to_address`.
   */
  outcome:
    | "pending"
    | "running"
    | "sent"
    | "delivered"
    | "bounced"
    | "complained"
    | "failed_later"
    | "failed"
    | "suppressed";
  finished_at?: string;
  /** It waits for this try. */
  next_attempt_at?: string;
  /** Why it failed, as the tenant sees it. */
  error?: string;
  /** Why it failed, in one word for programs. */
  failure_class?:
    | "recipient"
    | "mailbox_full"
    | "domain"
    | "refused"
    | "authentication"
    | "throttled"
    | "content"
    | "sender"
    | "unreachable"
    | "purged"
    | "other";
  /** The template that it was made from. */
  template?: string;
  /** For an e-mail: the part after the @. */
  recipient_domain?: string;
  /** As it was sent with them. */
  tags?: readonly { name: string; value: string }[];
};

export type OperatorJobPage = {
  jobs: readonly OperatorJob[];
  /** Pass it as `cursor`; null on the last page. */
  next_cursor: string | null;
  /** More jobs are waiting in the queue than are looked through: older ones may be missing. */
  incomplete: boolean;
};

export type JobResult = PassResult | FailedJobResult | SuppressedResult | EmptyResult;

export type JobHistory = {
  job_id: string;
  channel: "email" | "whatsapp" | "wallet";
  status: "pending" | "running" | "success" | "failed" | "suppressed";
  /** Tries that have ended and count, the last one included; a retry by an operator starts again at zero. */
  attempts: number;
  created_at: string;
  /**
   * The outcome, as far as it is known: a job with the status `success` is `sent`, or as reported after that
   * (`failed_later`: it was accepted, and then given up). For a message with copies, the outcome of its
   * `to_address`.
   */
  outcome:
    | "pending"
    | "running"
    | "sent"
    | "delivered"
    | "bounced"
    | "complained"
    | "failed_later"
    | "failed"
    | "suppressed";
  /** The latest tries, oldest first; at most 20. */
  history: readonly JobAttempt[];
  events: readonly JobEvent[];
  finished_at?: string;
  /** It waits for this try. */
  next_attempt_at?: string;
  /** Why it failed, as the tenant sees it. */
  error?: string;
  /** Why it failed, in one word for programs. */
  failure_class?:
    | "recipient"
    | "mailbox_full"
    | "domain"
    | "refused"
    | "authentication"
    | "throttled"
    | "content"
    | "sender"
    | "unreachable"
    | "purged"
    | "other";
  /** The template that it was made from. */
  template?: string;
  /** For an e-mail: the part after the @. */
  recipient_domain?: string;
  /** As it was sent with them. */
  tags?: readonly { name: string; value: string }[];
  result?: JobResult;
};

export type FoundJob = {
  /** The tenant that sent it. */
  tenant_id: string;
  job_id: string;
  channel: "email" | "whatsapp" | "wallet";
  status: "pending" | "running" | "success" | "failed" | "suppressed";
  /** Tries that have ended and count, the last one included; a retry by an operator starts again at zero. */
  attempts: number;
  created_at: string;
  /**
   * The outcome, as far as it is known: a job with the status `success` is `sent`, or as reported after that
   * (`failed_later`: it was accepted, and then given up). For a message with copies, the outcome of its
   * `to_address`.
   */
  outcome:
    | "pending"
    | "running"
    | "sent"
    | "delivered"
    | "bounced"
    | "complained"
    | "failed_later"
    | "failed"
    | "suppressed";
  finished_at?: string;
  /** It waits for this try. */
  next_attempt_at?: string;
  /** Why it failed, as the tenant sees it. */
  error?: string;
  /** Why it failed, in one word for programs. */
  failure_class?:
    | "recipient"
    | "mailbox_full"
    | "domain"
    | "refused"
    | "authentication"
    | "throttled"
    | "content"
    | "sender"
    | "unreachable"
    | "purged"
    | "other";
  /** The template that it was made from. */
  template?: string;
  /** For an e-mail: the part after the @. */
  recipient_domain?: string;
  /** As it was sent with them. */
  tags?: readonly { name: string; value: string }[];
};

export type FoundJobPage = {
  jobs: readonly FoundJob[];
  /** Pass it as `cursor`; null on the last page. */
  next_cursor: string | null;
  /** More jobs are waiting in the queues than are looked through: some of those may be missing. */
  incomplete: boolean;
};

export type RetriedJob = { job_id: string; status: "pending" };

export type RetryCount = { count: number };

export type RetriedJobs = {
  retried: number;
  /** Their content is not kept, they cannot be paid, or they are not failed any more. */
  skipped: number;
  /** Pass it as `cursor`; null on the last page. */
  next_cursor: string | null;
};

export type EmailJobContent = {
  channel: "email";
  /** The tenant's sender; null: the platform's. */
  from: string | null;
  to: string;
  subject: string;
  /** Without pixel and tracked links. Show it in a sandboxed frame only. Empty: the message is text alone. */
  html: string;
  text: string | null;
  cc?: readonly string[];
  bcc?: readonly string[];
  reply_to?: readonly string[];
  headers?: { readonly [name: string]: string };
  /**
   * Names and sizes; the files themselves are not shown. A message that came by SMTP and is sent as it came is one
   * file, `message.eml`: `subject`, `html` and `text` are what people see of it.
   */
  attachments?: readonly { filename: string; bytes: number; content_type: string | null; content_id: string | null }[];
};

export type WhatsappJobContent = {
  channel: "whatsapp";
  to: string;
  /** The provider's name of it. Absent: a message without one. */
  template?: string;
  language?: string;
  /** Values for the template's body, in order. */
  parameters?: readonly (string | JsonObject)[];
  /** Values for the template's body, by name. */
  named_parameters?: { readonly [name: string]: string | JsonObject };
  header?: JsonObject;
  buttons?: readonly JsonObject[];
  /** Further ones, such as a carousel, in the provider's form. */
  components?: readonly JsonObject[];
  /** Another message without a template, in the provider's form. */
  message?: JsonObject;
  text?: { body: string; preview_url: boolean };
};

export type WalletJobContent = {
  channel: "wallet";
  action: "create" | "update";
  pass_id: string;
  /** The version of the pass when the job was accepted. */
  version: number;
  /** The pass's data, as they are now. */
  pass: JsonObject;
};

export type JobContent = EmailJobContent | WhatsappJobContent | WalletJobContent;

export type Event =
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      job_id: string;
      channel: "email" | "whatsapp" | "wallet";
      event_type: "sent";
      result: EmptyResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      job_id: string;
      channel: "email" | "whatsapp" | "wallet";
      event_type: "delivered";
      result: RecipientResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      job_id: string;
      channel: "email" | "whatsapp" | "wallet";
      event_type: "read";
      result: EmptyResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      job_id: string;
      channel: "email" | "whatsapp" | "wallet";
      event_type: "opened";
      result: OpenedResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      job_id: string;
      channel: "email" | "whatsapp" | "wallet";
      event_type: "clicked";
      result: ClickedResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      job_id: string;
      channel: "email" | "whatsapp" | "wallet";
      event_type: "bounced";
      result: BouncedResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      job_id: string;
      channel: "email" | "whatsapp" | "wallet";
      event_type: "complained";
      result: EmptyResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      job_id: string;
      channel: "email" | "whatsapp" | "wallet";
      event_type: "failed";
      result: FailedResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    }
  | {
      /** Increasing: newer events have larger ids. */
      event_id: number;
      job_id: string;
      channel: "email" | "whatsapp" | "wallet";
      event_type: "suppressed";
      result: SuppressedEventResult;
      /** UTC, as YYYY-MM-DDTHH:MM:SSZ. */
      created_at: string;
    };

export type EventPage = {
  events: readonly Event[];
  has_more: boolean;
  /** Pass it as `cursor`; 0 on the last page. */
  next_cursor: number;
};

export type WebhookWithSecret = {
  webhook_id: string;
  url: string;
  /** Null: all. */
  event_types:
    | readonly (
        | "sent"
        | "delivered"
        | "read"
        | "opened"
        | "clicked"
        | "bounced"
        | "complained"
        | "failed"
        | "suppressed"
        | "message.received"
        | "message.unknown"
        | "account.updated"
        | "pass.personalized"
        | "reputation.warned"
        | "reputation.slowed"
        | "reputation.held"
        | "reputation.released"
      )[]
    | null;
  /** Null: all. */
  channels: readonly ("email" | "whatsapp" | "wallet")[] | null;
  description: string | null;
  /** 1: an event or message a call, as an object; more: arrays. */
  batch_max: number;
  status: "enabled" | "disabled";
  /** Null while it is enabled. */
  disabled_at: string | null;
  /** `gone`: the receiver answered 410; `failing`: it accepted no call for three days. */
  disabled_reason: "gone" | "failing" | null;
  /** The first failed call since the last success; null: the last call succeeded. */
  failing_since: string | null;
  /** When the failed call is repeated; null: no call waits to be repeated. */
  next_attempt_at: string | null;
  /** Why the last call failed. */
  last_error: string | null;
  /** The events through this one were delivered. */
  last_event_id: number;
  /**
   * The events of the call that failed: after the first id, through the last. Later events are delivered only once
   * they are accepted, or skipped by a replay after `through_event_id`.
   */
  blocked_by: { after_event_id: number; through_event_id: number } | null;
  /**
   * The events still to be replayed: after the first id, through the last, with messages that came in at that
   * time.
   */
  replay: { after_event_id: number; through_event_id: number } | null;
  created_at: string;
  /** The secret that signs calls. It is not shown again. */
  secret: string;
};

export type Webhook = {
  webhook_id: string;
  url: string;
  /** Null: all. */
  event_types:
    | readonly (
        | "sent"
        | "delivered"
        | "read"
        | "opened"
        | "clicked"
        | "bounced"
        | "complained"
        | "failed"
        | "suppressed"
        | "message.received"
        | "message.unknown"
        | "account.updated"
        | "pass.personalized"
        | "reputation.warned"
        | "reputation.slowed"
        | "reputation.held"
        | "reputation.released"
      )[]
    | null;
  /** Null: all. */
  channels: readonly ("email" | "whatsapp" | "wallet")[] | null;
  description: string | null;
  /** 1: an event or message a call, as an object; more: arrays. */
  batch_max: number;
  status: "enabled" | "disabled";
  /** Null while it is enabled. */
  disabled_at: string | null;
  /** `gone`: the receiver answered 410; `failing`: it accepted no call for three days. */
  disabled_reason: "gone" | "failing" | null;
  /** The first failed call since the last success; null: the last call succeeded. */
  failing_since: string | null;
  /** When the failed call is repeated; null: no call waits to be repeated. */
  next_attempt_at: string | null;
  /** Why the last call failed. */
  last_error: string | null;
  /** The events through this one were delivered. */
  last_event_id: number;
  /**
   * The events of the call that failed: after the first id, through the last. Later events are delivered only once
   * they are accepted, or skipped by a replay after `through_event_id`.
   */
  blocked_by: { after_event_id: number; through_event_id: number } | null;
  /**
   * The events still to be replayed: after the first id, through the last, with messages that came in at that
   * time.
   */
  replay: { after_event_id: number; through_event_id: number } | null;
  created_at: string;
};

export type WebhookList = { webhooks: readonly Webhook[] };

export type WebhookAttempt = {
  at: string;
  kind: "events" | "messages" | "test";
  /** The header `webhook-id`. */
  message_id: string;
  /** Events, or messages that came in, in the call. */
  events: number;
  /** Null: the call had no events. */
  first_event_id: number | null;
  /** Null: the call had no events. */
  last_event_id: number | null;
  /** Whether the receiver answered 2xx. */
  delivered: boolean;
  /** The answer's status; null: there was no answer. */
  status: number | null;
  /** Why it counts as failed. */
  error: string | null;
  /** The headers of the call, without signatures. */
  request_headers: { readonly [name: string]: string };
  /** The first 512 bytes of the receiver's answer to a call that it refused. */
  answer: string | null;
  duration_ms: number;
};

export type WebhookAttemptPage = {
  attempts: readonly WebhookAttempt[];
  /** Pass it as `cursor`; null on the last page. */
  next_cursor: string | null;
};

export type TenantWebhook = {
  tenant_id: string;
  webhook_id: string;
  url: string;
  /** Null: all. */
  event_types:
    | readonly (
        | "sent"
        | "delivered"
        | "read"
        | "opened"
        | "clicked"
        | "bounced"
        | "complained"
        | "failed"
        | "suppressed"
        | "message.received"
        | "message.unknown"
        | "account.updated"
        | "pass.personalized"
        | "reputation.warned"
        | "reputation.slowed"
        | "reputation.held"
        | "reputation.released"
      )[]
    | null;
  /** Null: all. */
  channels: readonly ("email" | "whatsapp" | "wallet")[] | null;
  description: string | null;
  /** 1: an event or message a call, as an object; more: arrays. */
  batch_max: number;
  status: "enabled" | "disabled";
  /** Null while it is enabled. */
  disabled_at: string | null;
  /** `gone`: the receiver answered 410; `failing`: it accepted no call for three days. */
  disabled_reason: "gone" | "failing" | null;
  /** The first failed call since the last success; null: the last call succeeded. */
  failing_since: string | null;
  /** When the failed call is repeated; null: no call waits to be repeated. */
  next_attempt_at: string | null;
  /** Why the last call failed. */
  last_error: string | null;
  /** The events through this one were delivered. */
  last_event_id: number;
  /**
   * The events of the call that failed: after the first id, through the last. Later events are delivered only once
   * they are accepted, or skipped by a replay after `through_event_id`.
   */
  blocked_by: { after_event_id: number; through_event_id: number } | null;
  /**
   * The events still to be replayed: after the first id, through the last, with messages that came in at that
   * time.
   */
  replay: { after_event_id: number; through_event_id: number } | null;
  created_at: string;
  /** `failing`: its last call failed and is repeated. */
  state: "enabled" | "failing" | "disabled";
  /**
   * By how much the last event that it was told is older than the tenant's last event; 0: it was told everything;
   * null: the event store does not answer.
   */
  behind_seconds: number | null;
  /** The last call, and the receiver's answer; null: it was not called within seven days. */
  last_call: {
    at: string;
    /** The answer's status; null: there was no answer. */
    status: number | null;
    /** Why it counts as failed. */
    error: string | null;
  } | null;
};

export type TenantWebhookPage = {
  webhooks: readonly TenantWebhook[];
  /** Pass it as `cursor`; null on the last page. */
  next_cursor: string | null;
};

export type FailureGroup = {
  tenant_id: string;
  channel: "email" | "whatsapp" | "wallet";
  /** `bounced`: it was sent, and then it came back. */
  type: "failed" | "bounced";
  failure_class:
    | "recipient"
    | "mailbox_full"
    | "domain"
    | "refused"
    | "authentication"
    | "throttled"
    | "content"
    | "sender"
    | "unreachable"
    | "purged"
    | "other";
  /** Each counts once; those that were sent again since count, too. */
  jobs: number;
  /** What the tenant sent on the channel in the hours of the range. */
  sent: number;
  /** The words of the latest one, without addresses and numbers of people. */
  example: string | null;
  last_at: string;
};

export type FailureGroupList = { groups: readonly FailureGroup[] };

export type Rates = {
  from: string;
  interval_seconds: number;
  series: readonly {
    channel: "email" | "whatsapp" | "wallet";
    outcome: "sent" | "delivered" | "bounced" | "failed" | "suppressed";
    counts: readonly number[];
  }[];
};

export type MetricsRow = {
  /** When the interval begins, in UTC. */
  at?: string;
  /** Empty: it has none, or is not known. */
  group?: string;
  sent?: number;
  delivered?: number;
  read?: number;
  opened?: number;
  clicked?: number;
  bounced?: number;
  complained?: number;
  failed?: number;
  suppressed?: number;
  machine_opened?: number;
  machine_clicked?: number;
  /** delivered / sent; null: there were none. */
  delivery_rate?: number | null;
  /** opened / delivered; null: there were none. */
  open_rate?: number | null;
  /** clicked / delivered; null: there were none. */
  click_rate?: number | null;
  /** read / delivered; null: there were none. */
  read_rate?: number | null;
  /** bounced / sent; null: there were none. */
  bounce_rate?: number | null;
  /** complained / delivered; null: there were none. */
  complaint_rate?: number | null;
};

export type Metrics = {
  from: string;
  to: string;
  timezone: string;
  interval: "hour" | "day" | "week" | "month" | null;
  group_by: "channel" | "domain" | "template" | "tag" | null;
  rows: readonly MetricsRow[];
};

export type Tenant = {
  id: string;
  name: string;
  plan: string;
  channels: readonly ("email" | "whatsapp" | "wallet")[];
  permissions: readonly "allow_raw_html"[];
  allow_custom: readonly ("email" | "whatsapp" | "wallet")[];
  /** Of e-mails, where neither message nor template says; a member that is absent is true. */
  tracking: {
    /** whether there is a pixel */
    opens?: boolean;
    /** whether links lead by us */
    clicks?: boolean;
  };
  /** Channels whose accepted messages wait. */
  paused: readonly ("email" | "whatsapp" | "wallet")[];
  /** Channels on which new sends are refused. */
  held: readonly ("email" | "whatsapp" | "wallet")[];
  /** Balance of wallet tokens. */
  tokens: number;
  shard: number;
  created_at: string;
};

export type TenantPage = {
  tenants: readonly Tenant[];
  /** Pass it as `cursor`; null on the last page. */
  next_cursor: string | null;
};

export type Purge = {
  channels: readonly ("email" | "whatsapp" | "wallet")[];
  /** Jobs that were unfinished at that moment, deliveries in flight included. */
  unfinished: number;
};

export type TenantReputation = {
  /** `warned` has no effect; `slowed`: a slower pace; `held`: new sends are refused, too. */
  level: "good" | "warned" | "slowed" | "held";
  /** When the level began. */
  since: string | null;
  /** The mode in force for the tenant. */
  governor: "on" | "warn" | "off";
  /** Null: `REPUTATION_GOVERNOR`. */
  own_governor: "on" | "warn" | "off" | null;
  /** The beginning of the hour 24 hours ago, or the release if that was later. */
  counted_from: string;
  /** The last release, for 24 hours. */
  released_at: string | null;
  sent: number;
  bounced: number;
  complained: number;
  /** Bounces, of the e-mails that were sent or bounced. Judged from `floor` such e-mails on. */
  bounces: {
    /** Null: there is no mail. */
    rate: number | null;
    floor: number;
    /** A rate above it. */
    thresholds: { warned: number; slowed: number; held: number };
  };
  /** Complaints, of the e-mails that were sent. Judged from `floor` such e-mails on. */
  complaints: {
    /** Null: there is no mail. */
    rate: number | null;
    floor: number;
    /** A rate above it. */
    thresholds: { warned: number; slowed: number; held: number };
  };
};

export type NewKey = {
  key_id: string;
  /** Shown once. */
  api_key: string;
};

export type Key = {
  key_id: string;
  prefix: string;
  name: string | null;
  created_at: string;
  /** To about a minute; null: never. */
  last_used_at: string | null;
  /** Null: it does not expire. */
  expires_at: string | null;
  /** The scopes of the key. */
  scopes: readonly ("send" | "read" | "manage")[];
};

export type KeyList = { keys: readonly Key[] };

export type Template =
  | {
      slug: string;
      channel: "email";
      subject: string;
      html: string;
      text: string | null;
      /** Absent: none. */
      topic?: string;
      /** Absent: the template leaves it open. */
      tracking?: {
        /** whether there is a pixel */
        opens?: boolean;
        /** whether links lead by us */
        clicks?: boolean;
      };
    }
  | {
      slug: string;
      channel: "wallet";
      pass_type: "apple" | "google";
      /** Of passes of type apple; null: as the request says. */
      style: "eventTicket" | "boardingPass" | "coupon" | "storeCard" | "generic" | "posterGeneric" | null;
      /** The default for members that requests leave out. */
      pass_data: ApplePassPart | GooglePassPart;
    };

export type TemplateList = { templates: readonly Template[] };

export type TemplatePreview =
  | {
      channel: "email";
      subject: string;
      html: string;
      /** Derived from the HTML where the template has none. */
      text: string | null;
      /** Variables that `data` has no value for: they are empty. */
      missing: readonly string[];
      /** Of subject, HTML and text together, in UTF-8. */
      size_bytes: number;
      /** By the built-in rules. Templates are sent whatever they score. */
      spam: { score: number; rules: readonly { rule: string; score: number; description: string }[] };
    }
  | {
      channel: "wallet";
      pass_type: "apple" | "google";
      style: "eventTicket" | "boardingPass" | "coupon" | "storeCard" | "generic" | "posterGeneric" | null;
      /** The given pass_data laid over the template's. */
      pass_data: JsonObject;
    };

export type EmailCredentials = {
  kind: "email";
  channel: "email";
  from_address: string;
  /** The sender's name. */
  from_name: string | null;
  /** Host and port of the tenant's own mail server; null: the platform's. */
  smtp_server: string | null;
  /** The UTC day on which the warm-up of a dedicated address began. */
  warm_up_from: string | null;
  /** Equal for equal credentials: the beginning of a SHA-256. */
  fingerprint: string;
  /** When their certificate expires. */
  expires_at: string | null;
  /** Whether the channel uses them. For e-mail, the sender's domain must be verified. */
  used: boolean;
  /** Why they are not used. */
  reason: string | null;
  /** Null: an earlier release stored them. */
  created_at: string | null;
  /** Null: an earlier release stored them. */
  changed_at: string | null;
};

export type WhatsappCredentials = {
  kind: "whatsapp";
  channel: "whatsapp";
  phone_number_id: string;
  /** Null: it was not given. */
  business_account_id: string | null;
  /** Equal for equal credentials: the beginning of a SHA-256. */
  fingerprint: string;
  /** When their certificate expires. */
  expires_at: string | null;
  /** Whether the channel uses them. For e-mail, the sender's domain must be verified. */
  used: boolean;
  /** Why they are not used. */
  reason: string | null;
  /** Null: an earlier release stored them. */
  created_at: string | null;
  /** Null: an earlier release stored them. */
  changed_at: string | null;
};

export type AppleCredentials = {
  kind: "apple";
  channel: "wallet";
  pass_type_id: string;
  team_id: string;
  /** Equal for equal credentials: the beginning of a SHA-256. */
  fingerprint: string;
  /** When their certificate expires. */
  expires_at: string | null;
  /** Whether the channel uses them. For e-mail, the sender's domain must be verified. */
  used: boolean;
  /** Why they are not used. */
  reason: string | null;
  /** Null: an earlier release stored them. */
  created_at: string | null;
  /** Null: an earlier release stored them. */
  changed_at: string | null;
};

export type GoogleCredentials = {
  kind: "google";
  channel: "wallet";
  issuer_id: string;
  client_email: string;
  /** Equal for equal credentials: the beginning of a SHA-256. */
  fingerprint: string;
  /** When their certificate expires. */
  expires_at: string | null;
  /** Whether the channel uses them. For e-mail, the sender's domain must be verified. */
  used: boolean;
  /** Why they are not used. */
  reason: string | null;
  /** Null: an earlier release stored them. */
  created_at: string | null;
  /** Null: an earlier release stored them. */
  changed_at: string | null;
};

export type CredentialsList = {
  credentials: readonly (EmailCredentials | WhatsappCredentials | AppleCredentials | GoogleCredentials)[];
};

export type Balance = { balance: number };

export type TokenMovementPage = {
  movements: readonly { amount: number; reason: string; job_id: string | null; balance: number; created_at: string }[];
  /** Pass it as `cursor`; null on the last page. */
  next_cursor: string | null;
};

export type Usage = {
  tenant_id: string;
  tenant_name: string;
  /** UTC, YYYY-MM. */
  month: string;
  api_calls: number;
  accepted: number;
  sent: { email: number; whatsapp: number; wallet: number };
  delivered: number;
  bounced: number;
  failed: number;
  suppressed: number;
  tokens_charged: number;
  tokens_given_back: number;
  tokens_topped_up: number;
  tokens_taken: number;
  /** `tokens_charged` less `tokens_given_back`; below 0 where a month gives back more than it charged. */
  tokens_billed: number;
};

export type TenantUsage = { usage: readonly Usage[] };

export type UsageList = {
  usage: readonly Usage[];
  /** Pass it as `cursor`; null on the last page. */
  next_cursor: string | null;
};

export type Suppression = {
  /**
   * In lower case: addresses are compared without regard to case. `(erased)`: the address itself is no longer
   * stored.
   */
  address: string;
  reason: "unsubscribed" | "bounced" | "complained" | "manual";
  created_at: string;
  /** Only messages on this topic do not go there; absent: none does. */
  topic?: string;
};

export type SuppressionPage = {
  suppressions: readonly Suppression[];
  /** Pass it as `cursor`; null on the last page. */
  next_cursor: string | null;
};

export type Erasure = {
  /** A keyed hash, which names the recipient in the audit log. */
  recipient_hash: string;
  /**
   * false: deliveries are in flight, jobs wait for their turn, or the event store still works on it. Repeat the
   * call.
   */
  complete: boolean;
  /** Unfinished jobs of the recipient that have not ended yet. */
  unfinished_left: number;
  erased: {
    /** Unfinished jobs that ended: as suppressed, with the reason `erased`, unless they were in flight. */
    unfinished_jobs: number;
    /** Jobs in the history that no longer lead to the recipient. */
    finished_jobs: number;
    /** Events whose text is masked. */
    events: number;
    /** Contents of failed jobs. */
    payloads: number;
    /** Entries of the list that are keyed hashes now. */
    suppressions: number;
    /** Messages in the sandbox, to whichever tenant they belonged. */
    sandbox_messages: number;
  };
};

export type TenantDeletion = {
  id: string;
  /** `deleted`: only its id and its bills are left. */
  state: "deleting" | "deleted";
  /** Jobs that are still ending. */
  unfinished: number;
};

export type Plan = {
  name: string;
  requests_per_minute: number;
  /** Null: as fast as the provider takes them. */
  deliveries_per_second: number | null;
  /** Unfinished jobs that a tenant may have; beyond it sends are 429. */
  queued_jobs_max: number;
  /** Bytes of the payloads of a tenant's unfinished jobs. */
  queued_bytes_max: number;
  /** How long after its acceptance a job is held while its mail server or provider is away. */
  hold_hours: number;
  /** How many tenants have it. */
  tenants: number;
};

export type PlanList = { plans: readonly Plan[] };

export type NewOperator = {
  operator_id: string;
  name: string;
  /** `read` may only look; `write` may change things, too. */
  role: "read" | "write";
  created_at: string;
  /** Shown once. */
  token: string;
};

export type Operator = {
  operator_id: string;
  name: string;
  /** `read` may only look; `write` may change things, too. */
  role: "read" | "write";
  created_at: string;
  /** When the token was last used, to about a minute; null: never. */
  last_used_at: string | null;
};

export type OperatorList = { operators: readonly Operator[] };

export type Session = {
  /** The operator's. */
  name: string;
  role: "read" | "write";
};

export type AuditRow = {
  audit_id: number;
  at: string;
  /** Of what a tenant changed itself: its key's. */
  operator_id: string;
  /** The operator's name at that time, or the id of the tenant's key. */
  operator: string;
  /** The call's operationId in this document. */
  action: string;
  /** The tenant that the path names, or that called. */
  tenant: string | null;
  /** The other parts that the path names; of a recipient, the domain alone. */
  target: string | null;
  /** `body` and `answer`: what was given and made. Members that may be secret have no value. */
  detail: JsonObject;
  /** The answer's status; null: it is unknown how the call ended. */
  status: number | null;
  request_id: string;
  /**
   * How many calls the row stands for: of a tenant's, beyond a share of the day, those of one operation and status
   * are counted in one. Key (`several`: more than one), target and detail are the first one's.
   */
  calls: number;
};

export type AuditPage = {
  rows: readonly AuditRow[];
  /** Pass it as `cursor`; null on the last page. */
  next_cursor: string | null;
};

export type Overview = {
  at: string;
  totals: {
    tenants: number | null;
    /** Since the UTC day began, as all of these. */
    accepted_today: number | null;
    /** Handed over to a provider. */
    sent_today: number | null;
    delivered_today: number | null;
    bounced_today: number | null;
    failed_today: number | null;
  };
  queue: {
    /** Unfinished jobs. */
    depth: number | null;
    /** There are more tenant queues than are measured: depths are too low. */
    incomplete: boolean;
    /** Age of the oldest job in a tenant queue; 0: none waits. */
    oldest_seconds: number | null;
    /** Age of the oldest event that the event store does not have; 0: it has all. */
    outbox_oldest_seconds: number | null;
    /** For a cluster, the memory of its fullest server. */
    redis_memory_bytes: number | null;
    /** The memory that it may use, or that its machine has. */
    redis_memory_limit_bytes: number | null;
  };
  rates: {
    from: string;
    interval_seconds: number;
    series: readonly {
      channel: "email" | "whatsapp" | "wallet";
      outcome: "accepted" | "delivered" | "bounced" | "failed" | "suppressed";
      /** By minute, oldest first; the last minute is still running. */
      counts: readonly number[];
    }[];
    /** Handed over to a provider. */
    sent: readonly {
      channel: "email" | "whatsapp" | "wallet";
      /** By minute, oldest first; the last minute is still running. */
      counts: readonly number[];
    }[];
  };
  shards: readonly {
    shard: number;
    depth: number;
    oldest_seconds: number;
    /** The process that delivers it. */
    process: string | null;
  }[];
  /** The 50 longest tenant queues, and the 50 with the oldest jobs. */
  tenants: readonly {
    tenant_id: string;
    channel: "email" | "whatsapp" | "wallet";
    depth: number;
    oldest_seconds: number;
    /**
     * Why its first job waits: for its turn, because an operator paused it, for the warm-up or the pace of its
     * sender, or for a relay that is away.
     */
    waits: "turn" | "paused" | "warm_up" | "pace" | "away";
  }[];
  processes: readonly {
    /** Host, place in its start, process id. */
    name: string;
    roles: readonly string[];
    started_at: string;
    shards: number;
    /** By how much its event loop was late in the last seconds, at most. */
    loop_delay_ms: number;
    /** The lag of the shards that it records; null: it records none. */
    event_store_lag_seconds: number | null;
    /** Relays that it finds away; at most 50, those with the most waiting jobs. */
    breakers: readonly {
      channel: "email" | "whatsapp" | "wallet";
      relay: string;
      state: "open" | "half_open";
      since: string;
      waiting_jobs: number;
      /** The server's last words, or what it did instead. */
      why?: string;
    }[];
    /** Tenants whose jobs wait because an operator paused them; at most 50. */
    paused: readonly { tenant_id: string; channel: "email" | "whatsapp" | "wallet" }[];
  }[];
  /** Within 30 days, soonest first; at most 50. */
  expiring: readonly {
    /** `apple_certificate` or `api_key`. */
    kind: string;
    /** Null: the platform's own. */
    tenant_id: string | null;
    name: string;
    expires_at: string;
  }[];
  /** The urgent first. */
  alarms: readonly {
    /** `page`: now; `ticket`: soon. */
    severity: "page" | "ticket";
    title: string;
    detail: string;
    /** The section of the runbook with the remedy. */
    runbook: string;
    channel?: "email" | "whatsapp" | "wallet";
    tenant_id?: string;
    /** The last minutes of the rates over which it was measured. */
    minutes?: number;
  }[];
};

export type SandboxMessages = {
  messages: readonly {
    channel: "email" | "whatsapp" | "wallet";
    received_at: string;
    from: string;
    to: string;
    subject: string;
    /** As it came over the wire; the first 2 MiB. */
    source: string;
    /** All recipients of the envelope, if there are several. */
    recipients?: readonly string[];
    /** The files that it carries, with their sizes. */
    attachments?: readonly { filename: string; bytes: number }[];
  }[];
};

export type DeviceComplaints = { complaints: readonly { logged_at: string; message: string }[] };

export type Health = { status: "ok" };

export type Ready = {
  status: "ready";
  /** All parts that are away, including those that the process can do without. Left out while none is. */
  away?: readonly {
    part: string;
    since: string;
    /** For relays: the server's last words, or its failure to answer. */
    why?: string;
  }[];
};

export type NotReady = {
  error: string;
  status: "unavailable";
  /** Names of the parts that are down. */
  failing: readonly string[];
  /** All parts that are away, including those that the process can do without. Left out while none is. */
  away?: readonly {
    part: string;
    since: string;
    /** For relays: the server's last words, or its failure to answer. */
    why?: string;
  }[];
};

/** The input and the answer of each operation, by its name in the OpenAPI document. */
export type Operations = {
  /**
   * Queue an e-mail. Content comes from a template (`template_id`) or from inline `html`. A message with a `pass`
   * makes the pass first, for 1 token. 202 means: on disk. Needs a key with the scope `send`.
   */
  sendEmail: { body: EmailSend; answer: PendingJob };
  /**
   * Queue up to 1,000 e-mails. Each message is `defaults` with its own members in their place (`null` removes
   * one), and is checked, counted and queued as a request of its own would be. A faulty message becomes an error
   * of its index and does not stop the others; the same holds for messages beyond the plan's limits. An
   * Idempotency-Key counts for the whole batch: a repeat queues the messages that an earlier call did not reach,
   * and returns the first answer again once there is one. Needs a key with the scope `send`.
   */
  sendEmailBatch: { body: EmailSendBatch; answer: BatchAnswer };
  /** The tenant's sending domains. Needs a key with the scope `read`. */
  listDomains: { answer: DomainList };
  /** One domain, with the records to publish for it. Needs a key with the scope `read`. */
  getDomain: {
    path: {
      /** The domain's name. */
      domain: string;
    };
    answer: Domain;
  };
  /**
   * Look at a domain's records again. A name server that does not answer changes no status. Mail can be sent from
   * the domain once it is verified. Needs a key with the scope `manage`.
   */
  verifyDomain: {
    path: {
      /** The domain's name. */
      domain: string;
    };
    answer: Domain;
  };
  /** A tenant's domains, with what the last verification found. */
  listTenantDomains: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: OperatorDomainList;
  };
  /** Register a domain for a tenant, with a new DKIM key. */
  registerDomain: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** a domain name, such as mail.example.com */
      domain: string;
      /** true or false, by default true */
      relay_enabled?: boolean | null;
      /** true or false, by default false */
      smtp_enabled?: boolean | null;
    };
    answer: OperatorDomain;
  };
  /** One domain: which record fails, and why. */
  getTenantDomain: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The domain's name. */
      domain: string;
    };
    answer: OperatorDomain;
  };
  /** Forget a domain and its key: sends from it are refused. */
  deleteDomain: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The domain's name. */
      domain: string;
    };
    answer: null;
  };
  /**
   * Look at the records of a tenant's domain again. As the tenant does it. A name server that does not answer
   * changes no status.
   */
  verifyTenantDomain: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The domain's name. */
      domain: string;
    };
    answer: OperatorDomain;
  };
  /**
   * The domain of the platform's own sender (`MAIL_FROM`), with the records to publish for it. Mail of tenants
   * without a domain of their own is signed by it once it is verified.
   */
  getSenderDomain: { answer: OperatorDomain };
  /** Look at the records of the platform's sender again. A name server that does not answer changes no status. */
  verifySenderDomain: { answer: OperatorDomain };
  /** Set a tenant's own sender; stored encrypted, never given back. */
  putEmailCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** one e-mail address */
      from_address: string;
      /** 1 to 200 characters without control characters */
      from_name?: string | null;
      /** the address of a mail server, such as smtp://user:password@mail.example.com:587 */
      smtp_url?: string | null;
      /** the UTC day (YYYY-MM-DD) on which a dedicated address began to send and its warm-up to count */
      warm_up_from?: string | null;
    };
    answer: CredentialsStored;
  };
  /** A tenant's own Email credentials, without their secrets. */
  getEmailCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: EmailCredentials;
  };
  /**
   * Delete a tenant's own Email credentials: from then on the platform's are used; what was made with the deleted
   * ones may no longer be updatable.
   */
  deleteEmailCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: null;
  };
  /**
   * Hand over a bounce or a complaint that came by mail. One message as it came: a delivery status notification
   * (RFC 3464), a feedback report (RFC 5965) or a mail system's notice. It adds `bounced`, `failed` or
   * `complained` to the job whose message it returns, or whose return path it came to. The main recipient of one
   * that bounced or was complained of is suppressed where the returned message still has its unsubscribe link. Any
   * other message is ignored. Safe to repeat.
   */
  takeMailReport: { body: string | Uint8Array<ArrayBuffer>; answer: MailReportsTaken };
  /** The tracking pixel: always the same picture, for an unknown token, too. */
  trackOpen: {
    path: {
      /** The signed token of a link in a message. */
      token: string;
    };
    answer: ReadableStream<Uint8Array<ArrayBuffer>>;
  };
  /** Leads to the address that the token carries. */
  trackClick: {
    path: {
      /** The signed token of a link in a message. */
      token: string;
    };
    answer: null;
  };
  /** A page that asks what to unsubscribe from, or says that it is done already and offers to undo it. */
  askUnsubscribe: {
    path: {
      /** The signed token of a link in a message. */
      token: string;
    };
    answer: ReadableStream<Uint8Array<ArrayBuffer>>;
  };
  /** Unsubscribes the recipient from the message's topic (RFC 8058), as often as it is called. */
  unsubscribe: {
    path: {
      /** The signed token of a link in a message. */
      token: string;
    };
    query?: {
      /**
       * The choice behind a button of the page: topic, all, undo_topic, undo_all. Without one of these the reader
       * leaves the message's topic, or altogether if it has none.
       */
      choice?: string;
    };
    body?: string | Uint8Array<ArrayBuffer>;
    answer: ReadableStream<Uint8Array<ArrayBuffer>>;
  };
  /**
   * Queue a chat message. A template that the provider has approved with its values, or an answer (text, media, a
   * location, contacts, a reaction or an interactive message) to somebody who wrote to the sending number within
   * the last 24 hours. A message with a `pass` makes the pass first, for 1 token; a value that is
   * `{{.pass.save_link}}`, `{{.pass.save_token}}` (Google), `{{.pass.download_url}}`, `{{.pass.download_token}}`
   * (Apple) or `{{.pass.pass_id}}` alone is replaced by the pass's own value. 202 means: on disk. 500 where
   * neither the tenant nor the platform has credentials for the provider. Needs a key with the scope `send`.
   */
  sendWhatsapp: { body: ChatSend; answer: PendingJob };
  /**
   * Queue up to 1,000 chat messages. Each message is `defaults` with its own members in their place (`null`
   * removes one), and is checked, counted and queued as a request of its own would be. A faulty message becomes an
   * error of its index and does not stop the others; the same holds for messages beyond the plan's limits. An
   * Idempotency-Key counts for the whole batch: a repeat queues the messages that an earlier call did not reach,
   * and returns the first answer again once there is one. Needs a key with the scope `send`.
   */
  sendWhatsappBatch: { body: ChatSendBatch; answer: BatchAnswer };
  /** List a tenant's names for chat templates. */
  listAliases: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: AliasList;
  };
  /** List a tenant's names for chat templates. Needs a key with the scope `read`. */
  listOwnAliases: { answer: AliasList };
  /** Create or replace a tenant's name for a chat template. */
  putAlias: {
    path: {
      /** A tenant's id. */
      id: string;
      /** What `template_id` names. */
      alias: string;
    };
    body: {
      /** the provider's name of the template, 1 to 512 characters */
      meta_name: string;
      /** the code of the template's language, such as es or en_US, or null */
      language_code?: string | null;
      /** what each position holds: at most 200 texts */
      params?: readonly string[] | null;
      /** the media of the template's header {type, link | id, filename?}, or null */
      header?:
        | ({
            /** one of image, video, document */
            type: "image" | "video" | "document";
            /** an https address that the provider can fetch the media from; either this or id */
            link?: string | null;
            /** the provider's id of uploaded media; either this or link */
            id?: string | null;
            /** 1 to 240 characters without control characters, for documents only */
            filename?: string | null;
          } & (
            | {
                /** an https address that the provider can fetch the media from; either this or id */
                link: string | null;
              }
            | {
                /** the provider's id of uploaded media; either this or link */
                id: string | null;
              }
          ) &
            ({ type?: "document" } | { filename?: never }))
        | null;
    };
    answer: Alias;
  };
  /** One alias. */
  getAlias: {
    path: {
      /** A tenant's id. */
      id: string;
      /** What `template_id` names. */
      alias: string;
    };
    answer: Alias;
  };
  /** Delete an alias. */
  deleteAlias: {
    path: {
      /** A tenant's id. */
      id: string;
      /** What `template_id` names. */
      alias: string;
    };
    answer: null;
  };
  /** Create or replace a tenant's name for a chat template. Needs a key with the scope `manage`. */
  putOwnAlias: {
    path: {
      /** What `template_id` names. */
      alias: string;
    };
    body: {
      /** the provider's name of the template, 1 to 512 characters */
      meta_name: string;
      /** the code of the template's language, such as es or en_US, or null */
      language_code?: string | null;
      /** what each position holds: at most 200 texts */
      params?: readonly string[] | null;
      /** the media of the template's header {type, link | id, filename?}, or null */
      header?:
        | ({
            /** one of image, video, document */
            type: "image" | "video" | "document";
            /** an https address that the provider can fetch the media from; either this or id */
            link?: string | null;
            /** the provider's id of uploaded media; either this or link */
            id?: string | null;
            /** 1 to 240 characters without control characters, for documents only */
            filename?: string | null;
          } & (
            | {
                /** an https address that the provider can fetch the media from; either this or id */
                link: string | null;
              }
            | {
                /** the provider's id of uploaded media; either this or link */
                id: string | null;
              }
          ) &
            ({ type?: "document" } | { filename?: never }))
        | null;
    };
    answer: Alias;
  };
  /** One alias. Needs a key with the scope `read`. */
  getOwnAlias: {
    path: {
      /** What `template_id` names. */
      alias: string;
    };
    answer: Alias;
  };
  /** Delete an alias. Needs a key with the scope `manage`. */
  deleteOwnAlias: {
    path: {
      /** What `template_id` names. */
      alias: string;
    };
    answer: null;
  };
  /** List the chat templates of a tenant's own account, as they were read last. */
  listChatTemplates: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: ChatTemplates;
  };
  /** List the chat templates of a tenant's own account, as they were read last. Needs a key with the scope `read`. */
  listOwnChatTemplates: { answer: ChatTemplates };
  /**
   * Read the chat templates of a tenant's own account from the provider. The list is kept, and what the provider's
   * callbacks say of a template changes it. A send whose template does not fit is answered 400 from then on. 409
   * where the tenant's credentials name no account, or the provider does not list its templates.
   */
  syncChatTemplates: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: ChatTemplates;
  };
  /**
   * Read the chat templates of a tenant's own account from the provider. The list is kept, and what the provider's
   * callbacks say of a template changes it. A send whose template does not fit is answered 400 from then on. 409
   * where the tenant's credentials name no account, or the provider does not list its templates. Needs a key with
   * the scope `manage`.
   */
  syncOwnChatTemplates: { answer: ChatTemplates };
  /**
   * Set a tenant's own phone number for chat, used where allow_custom names whatsapp; stored encrypted, never
   * given back.
   */
  putWhatsappCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** the provider's id of the phone number, 1 to 32 digits */
      phone_number_id: string;
      /** an access token: printable ASCII characters without blanks */
      access_token: string;
      /** the provider's id of the WhatsApp Business account, 1 to 32 digits, by which its templates can be listed */
      business_account_id?: string | null;
    };
    answer: CredentialsStored;
  };
  /** A tenant's own Whatsapp credentials, without their secrets. */
  getWhatsappCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: WhatsappCredentials;
  };
  /**
   * Delete a tenant's own Whatsapp credentials: from then on the platform's are used; what was made with the
   * deleted ones may no longer be updatable.
   */
  deleteWhatsappCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: null;
  };
  /**
   * List the messages that people wrote to the numbers of the platform's business accounts, newest first; the
   * newest ones are kept.
   */
  listIncomingMessages: {
    query?: {
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
    };
    answer: IncomingMessagePage;
  };
  /** Tells the chat provider that this address is the one that it was given. */
  answerWhatsappChallenge: {
    query: {
      /** `subscribe`. */
      "hub.mode": string;
      /** The webhook secret. */
      "hub.verify_token": string;
      /** Given back. */
      "hub.challenge": string;
    };
    answer: ReadableStream<Uint8Array<ArrayBuffer>>;
  };
  /**
   * Takes what the chat provider reports: statuses of messages, and messages that came in. Answered once what
   * people wrote and statuses of known messages are on disk; those of messages that are not known yet are held in
   * memory for a moment. Safe to repeat, and repeated by the provider unless it was answered 200. Statuses `sent`,
   * `delivered`, `read` and `failed` become events. News of accounts and templates, and whatever has an unknown
   * form, are kept, and tenants' webhooks hear of them (`account.updated`, `message.unknown`).
   */
  takeWhatsappWebhook: { body: WhatsappWebhook; answer: WebhookReceived };
  /**
   * Queue a wallet pass. A pass costs 1 token, which is given back should the job fail. Keys of an Apple pass may
   * be written as `auxiliary_fields` or as Apple does (`auxiliaryFields`), but not as both; further keys of
   * Apple's pass.json are taken in the same two spellings, unknown ones are refused. Images are PNGs in base64 or
   * a data URL of at most 2 MiB each, and 4 MiB in one pass. With `template_id`, type, style and whatever the
   * request leaves out or gives as null come from the template; fields are merged by their key, text modules by
   * their id, and where both say something the request wins. A Google pass is a generic one unless `class_type`
   * says otherwise. Needs a key with the scope `send`.
   */
  sendWallet: { body: PassRequest; answer: PendingJob };
  /**
   * Queue a wallet pass, a Google one as an event ticket. A pass costs 1 token, which is given back should the job
   * fail. Keys of an Apple pass may be written as `auxiliary_fields` or as Apple does (`auxiliaryFields`), but not
   * as both; further keys of Apple's pass.json are taken in the same two spellings, unknown ones are refused.
   * Images are PNGs in base64 or a data URL of at most 2 MiB each, and 4 MiB in one pass. With `template_id`,
   * type, style and whatever the request leaves out or gives as null come from the template; fields are merged by
   * their key, text modules by their id, and where both say something the request wins. A Google pass is an event
   * ticket unless `class_type` says otherwise. Needs a key with the scope `send`.
   */
  createPass: { body: PassRequest; answer: PendingJob };
  /**
   * Change a pass, and tell the devices that have it. Fields are merged by their `key` (a Google object's text
   * modules by their `id`), every other key is replaced, null removes it. A field whose `value` is null is taken
   * off, and one that is named in another group of fields moves there. An update without a change makes no version
   * and no push; an empty image leaves the present one, and a pass cannot get more than 4 MiB of images. A field
   * with `changeMessage` shows a banner, and so does `notify_message` for a Google pass. It is free of charge.
   * Versions follow the order in which updates are accepted. Where a 429 says that the share of the queue is used
   * up, the pass may be changed already: repeat the request, and its holders are told. Needs a key with the scope
   * `send`.
   */
  updatePass: {
    path: {
      /** The pass_id in the result of the job that created the pass. */
      id: string;
    };
    body: PassUpdate;
    answer: UpdatingPass;
  };
  /** The file of an Apple pass. Needs a key with the scope `read`. */
  downloadPass: {
    path: {
      /** The pass_id in the result of the job that created the pass. */
      id: string;
    };
    answer: ReadableStream<Uint8Array<ArrayBuffer>>;
  };
  /**
   * Whether a pass is valid, and on how many devices. A Google pass is looked up at Google each time. Needs a key
   * with the scope `read`.
   */
  getPassStatus: {
    path: {
      /** The pass_id in the result of the job that created the pass. */
      id: string;
    };
    answer: PassStatus;
  };
  /**
   * A public link to Apple passes, which come as one file. Of several passes the file is a `.pkpasses` bundle, and
   * Wallet adds all of them at once. The link has no end, and leads to the latest version of each pass. Needs a
   * key with the scope `read`.
   */
  linkPasses: {
    body: {
      /** a list of 1 to 10 ids of Apple passes, each once */
      pass_ids: readonly string[];
    };
    answer: PassLink;
  };
  /**
   * Create a class of Google passes. One a kind of pass or event: its passes show what it says. Ids begin with the
   * issuer id and a dot. With the platform's issuer, which tenants share, a class belongs to the tenant that
   * creates it or is the first to use it: no other can create, change or read it, or have passes of it. Needs a
   * key with the scope `send`.
   */
  createGoogleClass: { body: NewGoogleClass; answer: GoogleClassChange };
  /**
   * Change a class, and with it all its passes. Members that are given replace what the class says, null removes
   * one; `venue`, `dateTime`, `origin`, `destination` and `flightHeader` are changed member by member. The class
   * is submitted for review with every change (`reviewStatus` UNDER_REVIEW), but for a draft that is to stay one
   * (DRAFT). Needs a key with the scope `send`.
   */
  changeGoogleClass: {
    path: {
      /** The class's id. */
      id: string;
    };
    body: GoogleClassUpdate;
    answer: GoogleClassChange;
  };
  /** A class as Google holds it. Needs a key with the scope `read`. */
  getGoogleClass: {
    path: {
      /** The class's id. */
      id: string;
    };
    query: {
      /** Its kind. */
      class_type: "generic" | "eventTicket" | "loyalty" | "offer" | "giftCard" | "transit" | "flight";
    };
    answer: GoogleClass;
  };
  /**
   * Receives Google's callbacks about a pass: that somebody has saved it, or removed it. Signed by the protocol
   * ECv2SigningOnly for the issuer of the object. Answered once it is on disk, and the tenant's wallet webhook is
   * called; a callback with a known `nonce` has no effect. Safe to repeat.
   */
  takeGoogleCallback: { body: GoogleCallback; answer: GoogleCallbackReceived };
  /**
   * A device has the pass, and says where it can be pushed to. A new push token holds for all passes of the type
   * on the device.
   */
  registerDevice: {
    path: {
      /** The device library identifier. */
      device: string;
      /** The pass type identifier. */
      passType: string;
      /** The pass's serial number. */
      serial: string;
    };
    body: { pushToken: string };
    answer: null;
  };
  /** A device has the pass no longer. */
  unregisterDevice: {
    path: {
      /** The device library identifier. */
      device: string;
      /** The pass type identifier. */
      passType: string;
      /** The pass's serial number. */
      serial: string;
    };
    answer: null;
  };
  /** Serials of the device's passes that changed since a tag. */
  listUpdatedPasses: {
    path: {
      /** The device library identifier. */
      device: string;
      /** The pass type identifier. */
      passType: string;
    };
    query?: {
      /** The `lastUpdated` of an earlier answer; absent: all of them. */
      passesUpdatedSince?: string;
    };
    answer: { serialNumbers: readonly string[]; lastUpdated: string } | null;
  };
  /** The latest signed pass. */
  getLatestPass: {
    path: {
      /** The pass type identifier. */
      passType: string;
      /** The pass's serial number. */
      serial: string;
    };
    answer: ReadableStream<Uint8Array<ArrayBuffer>>;
  };
  /** Receives a device's complaints. */
  logDeviceComplaint: { body: { logs: readonly string[] }; answer: null };
  /**
   * Receives what the holder of a pass entered in its sign-up form. The tenant's webhooks hear of it as
   * `pass.personalized`. Safe to repeat.
   */
  personalizePass: {
    path: {
      /** The pass type identifier. */
      passType: string;
      /** The pass's serial number. */
      serial: string;
    };
    body: {
      /** a text of at most 2048 characters without brackets, quotes and control characters */
      personalizationToken: string;
      /**
       * The entered values, such as `fullName`, `givenName`, `familyName`, `emailAddress`, `phoneNumber`,
       * `postalCode`.
       */
      requiredPersonalizationInfo: JsonObject;
    };
    answer: ReadableStream<Uint8Array<ArrayBuffer>>;
  };
  /** The file of an Apple pass that came with a message, or of several. */
  getPassFile: {
    path: {
      /** The signed token of a link. */
      token: string;
    };
    answer: ReadableStream<Uint8Array<ArrayBuffer>>;
  };
  /** Set what a tenant's own Apple passes are signed with; stored encrypted, never given back. */
  putAppleCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** the Pass Type ID certificate in PEM */
      certificate_pem: string;
      /** the certificate's private key in PEM */
      private_key_pem: string;
      /** the pass type identifier, such as pass.com.example.card */
      pass_type_id: string;
      /** the team identifier: 10 characters */
      team_id: string;
      /** the passphrase of the private key */
      passphrase?: string | null;
      /** Apple's intermediate that issued the certificate; by default one is found in PEM */
      wwdr_pem?: string | null;
    };
    answer: CredentialsStoredWithWarnings;
  };
  /** A tenant's own Apple credentials, without their secrets. */
  getAppleCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: AppleCredentials;
  };
  /**
   * Delete a tenant's own Apple credentials: from then on the platform's are used; what was made with the deleted
   * ones may no longer be updatable.
   */
  deleteAppleCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: null;
  };
  /** Set a tenant's own issuer of Google passes; stored encrypted, never given back. */
  putGoogleCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** the JSON key of a service account, as an object or as text */
      service_account:
        | ({
            /** The account's e-mail address. */
            client_email?: string | null;
            /** An RSA key in PEM. */
            private_key?: string | null;
          } & JsonObject)
        | string;
      /** the issuer's id: digits */
      issuer_id: string;
    };
    answer: CredentialsStored;
  };
  /** A tenant's own Google credentials, without their secrets. */
  getGoogleCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: GoogleCredentials;
  };
  /**
   * Delete a tenant's own Google credentials: from then on the platform's are used; what was made with the deleted
   * ones may no longer be updatable.
   */
  deleteGoogleCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: null;
  };
  /** Set where a tenant hears of devices that take or drop its passes. */
  putWalletWebhook: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** the address that device registrations are told to, or null for none */
      wallet_webhook_url: string | null;
    };
    answer: WalletWebhook;
  };
  /**
   * Move a scheduled job to another time. A time that is past, or now, sends it at once. 409 once its time has
   * come. Needs a key with the scope `send`.
   */
  rescheduleJob: {
    path: {
      /** The job_id that the send answered. */
      id: string;
    };
    body: Reschedule;
    answer: ScheduledJob;
  };
  /** Show a job's status and result. Needs a key with the scope `read`. */
  getJob: {
    path: {
      /** The job_id that the send answered. */
      id: string;
    };
    answer: Job;
  };
  /**
   * Cancel a job that was not handed over. It ends as `suppressed` with the reason `canceled`, is not billed, and
   * a pass gives its token back. Repeated, the answer is the same. 409 if its delivery has begun, or may have.
   * Needs a key with the scope `send`.
   */
  cancelJob: {
    path: {
      /** The job_id that the send answered. */
      id: string;
    };
    answer: CanceledJob;
  };
  /** Delivery history of one job, oldest first. Needs a key with the scope `read`. */
  getJobEvents: {
    path: {
      /** The job_id that the send answered. */
      id: string;
    };
    answer: JobEvents;
  };
  /**
   * The tenant's jobs, newest first. Unfinished and finished ones; finished ones are kept for `JOBS_KEPT_DAYS`. A
   * job is on one page only, even if it ends meanwhile. A page can have fewer jobs than `limit`, even none: the
   * list goes on while there is a `next_cursor`. One list of a tenant is read at a time, and a few wait for it.
   * Needs a key with the scope `read`.
   */
  listOwnJobs: {
    query?: {
      /** Only this status. */
      status?: "pending" | "running" | "success" | "failed" | "suppressed";
      /** Only this channel. */
      channel?: "email" | "whatsapp" | "wallet";
      /** Only to this e-mail address or phone number. */
      recipient?: string;
      /** Only from this template. */
      template?: string;
      /** Only with this tag, as `name:value`. */
      tag?: string;
      /** Only those that failed, or bounced, for this reason. */
      failure_class?:
        | "recipient"
        | "mailbox_full"
        | "domain"
        | "refused"
        | "authentication"
        | "throttled"
        | "content"
        | "sender"
        | "unreachable"
        | "purged"
        | "other";
      /** Accepted at this time or later. A UTC day or a time (RFC 3339). */
      from?: string;
      /** Accepted before the end of this day, or at this time or earlier. A UTC day or a time (RFC 3339). */
      to?: string;
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
    };
    answer: JobPage;
  };
  /**
   * Why a job waits, and how each of its tries ended. Reasons known to the delivering process alone (a pace, an
   * unavailable mail server) are missing if that process does not answer at once; `waits_for` is then `turn`.
   * Needs a key with the scope `read`.
   */
  explainJob: {
    path: {
      /** The job_id that the send answered. */
      id: string;
    };
    answer: JobExplanation;
  };
  /**
   * A tenant's jobs, newest first. Unfinished and finished ones. A job is on one page only, even if it ends
   * meanwhile.
   */
  listJobs: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    query?: {
      /** Only this status. */
      status?: "pending" | "running" | "success" | "failed" | "suppressed";
      /** Only this channel. */
      channel?: "email" | "whatsapp" | "wallet";
      /** Only to this e-mail address or phone number. */
      recipient?: string;
      /** Only from this template. */
      template?: string;
      /** Only with this tag, as `name:value`. */
      tag?: string;
      /** Only those that failed, or bounced, for this reason. */
      failure_class?:
        | "recipient"
        | "mailbox_full"
        | "domain"
        | "refused"
        | "authentication"
        | "throttled"
        | "content"
        | "sender"
        | "unreachable"
        | "purged"
        | "other";
      /** Accepted at this time or later. A UTC day or a time (RFC 3339). */
      from?: string;
      /** Accepted before the end of this day, or at this time or earlier. A UTC day or a time (RFC 3339). */
      to?: string;
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
    };
    answer: OperatorJobPage;
  };
  /** A job with its tries and events. */
  getJobHistory: {
    path: {
      /** A tenant's id. */
      id: string;
      /** A job's id. */
      job_id: string;
    };
    answer: JobHistory;
  };
  /**
   * Find a job, or what was sent to a recipient, with all tenants. Newest first. A job is on one page only, even
   * if it ends meanwhile.
   */
  searchJobs: {
    query?: {
      /** All jobs to this e-mail address or phone number. */
      recipient?: string;
      /** The job of this id. One of the two is needed. */
      job_id?: string;
      /** Accepted at this time or later. A UTC day or a time (RFC 3339). */
      from?: string;
      /** Accepted before the end of this day, or at this time or earlier. A UTC day or a time (RFC 3339). */
      to?: string;
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
    };
    answer: FoundJobPage;
  };
  /**
   * Try a failed job again. Under the same id, with the list of its earlier tries. Its content is kept for seven
   * days after its failure, if it is not too large. A wallet pass costs its token again, and so does one that a
   * message carries.
   */
  retryJob: {
    path: {
      /** A tenant's id. */
      id: string;
      /** A job's id. */
      job_id: string;
    };
    answer: RetriedJob;
  };
  /** Try failed jobs again. The newest first, at most 1000 a call: go on with `next_cursor` until it is null. */
  retryJobs: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      filter: {
        channel?: ("email" | "whatsapp" | "wallet") | null;
        /** E-mail address or phone number. */
        recipient?: string | null;
        template?: string | null;
        /**
         * one of recipient, mailbox_full, domain, refused, authentication, throttled, content, sender, unreachable,
         * purged, other
         */
        failure_class?:
          | (
              | "recipient"
              | "mailbox_full"
              | "domain"
              | "refused"
              | "authentication"
              | "throttled"
              | "content"
              | "sender"
              | "unreachable"
              | "purged"
              | "other"
            )
          | null;
        /** Accepted at this time or later. A UTC day or a time (RFC 3339). */
        from?: string | null;
        /** Accepted before the end of this day, or at this time or earlier. A UTC day or a time (RFC 3339). */
        to?: string | null;
      };
      /** Only count them. */
      dry_run?: boolean | null;
      /** The `next_cursor` of the call before. */
      cursor?: string | null;
    };
    answer: RetryCount | RetriedJobs;
  };
  /**
   * Show a job's content. For an unfinished job, or one that failed in the last seven days, as it would be sent
   * now. It is personal data: the call needs the role `write`, and is audited.
   */
  getJobContent: {
    path: {
      /** A tenant's id. */
      id: string;
      /** A job's id. */
      job_id: string;
    };
    answer: JobContent;
  };
  /**
   * Delivery history of the tenant, newest first. For more than 31 days, split the export into several calls.
   * Unknown parameters are refused. Needs a key with the scope `read`.
   */
  listEvents: {
    query: {
      /** First UTC day, inclusive. */
      from: string;
      /** Last UTC day, inclusive; at most 31 days after `from`. */
      to: string;
      /** Only this channel. Without it: e-mail and chat. */
      channel?: "email" | "whatsapp" | "wallet";
      /** Only this type. */
      event_type?:
        | "sent"
        | "delivered"
        | "read"
        | "opened"
        | "clicked"
        | "bounced"
        | "complained"
        | "failed"
        | "suppressed";
      /** Page size; above 500 counts as 500. */
      limit?: number;
      /** The `next_cursor` of the previous page. */
      cursor?: number;
    };
    answer: EventPage;
  };
  /**
   * Register an address for events. It receives the events from now on. The answer has the secret that calls are
   * signed with (Standard Webhooks), which is not shown again. Needs a key with the scope `manage`.
   */
  createWebhook: {
    body: {
      /** an https address of at most 2048 characters */
      url: string;
      /**
       * an array of sent, delivered, read, opened, clicked, bounced, complained, failed, suppressed, message.received,
       * message.unknown, account.updated, pass.personalized, reputation.warned, reputation.slowed, reputation.held,
       * reputation.released; null: all
       */
      event_types?:
        | readonly (
            | "sent"
            | "delivered"
            | "read"
            | "opened"
            | "clicked"
            | "bounced"
            | "complained"
            | "failed"
            | "suppressed"
            | "message.received"
            | "message.unknown"
            | "account.updated"
            | "pass.personalized"
            | "reputation.warned"
            | "reputation.slowed"
            | "reputation.held"
            | "reputation.released"
          )[]
        | null;
      /** an array of email, whatsapp, wallet; null: all */
      channels?: readonly ("email" | "whatsapp" | "wallet")[] | null;
      /** 1 to 200 characters without control characters, or null */
      description?: string | null;
      /** an integer from 1 (each event is a call of its own) to 500 (arrays of up to so many) */
      batch_max?: number | null;
    };
    answer: WebhookWithSecret;
  };
  /** The tenant's webhooks. Needs a key with the scope `read`. */
  listWebhooks: { answer: WebhookList };
  /** One webhook, and how its receiver does. Needs a key with the scope `read`. */
  getWebhook: {
    path: {
      /** The webhook's id. */
      id: string;
    };
    answer: Webhook;
  };
  /**
   * Change a webhook. Members that are left out stay as they are; null is the default. A new address is called at
   * once, unless the webhook is disabled: then once it is enabled. Needs a key with the scope `manage`.
   */
  changeWebhook: {
    path: {
      /** The webhook's id. */
      id: string;
    };
    body: {
      /** an https address of at most 2048 characters */
      url?: string | null;
      /**
       * an array of sent, delivered, read, opened, clicked, bounced, complained, failed, suppressed, message.received,
       * message.unknown, account.updated, pass.personalized, reputation.warned, reputation.slowed, reputation.held,
       * reputation.released; null: all
       */
      event_types?:
        | readonly (
            | "sent"
            | "delivered"
            | "read"
            | "opened"
            | "clicked"
            | "bounced"
            | "complained"
            | "failed"
            | "suppressed"
            | "message.received"
            | "message.unknown"
            | "account.updated"
            | "pass.personalized"
            | "reputation.warned"
            | "reputation.slowed"
            | "reputation.held"
            | "reputation.released"
          )[]
        | null;
      /** an array of email, whatsapp, wallet; null: all */
      channels?: readonly ("email" | "whatsapp" | "wallet")[] | null;
      /** 1 to 200 characters without control characters, or null */
      description?: string | null;
      /** an integer from 1 (each event is a call of its own) to 500 (arrays of up to so many) */
      batch_max?: number | null;
    };
    answer: Webhook;
  };
  /** Delete a webhook and its log. Needs a key with the scope `manage`. */
  deleteWebhook: {
    path: {
      /** The webhook's id. */
      id: string;
    };
    answer: null;
  };
  /**
   * Sign with a new secret. For 24 hours, the former secret signs, too: calls then carry two signatures. Needs a
   * key with the scope `manage`.
   */
  rotateWebhookSecret: {
    path: {
      /** The webhook's id. */
      id: string;
    };
    answer: WebhookWithSecret;
  };
  /**
   * Call a webhook now. With a signed `webhook.test` in place of an event, outside the order of events and also
   * while the webhook is disabled. Only the log changes. Needs a key with the scope `manage`.
   */
  testWebhook: {
    path: {
      /** The webhook's id. */
      id: string;
    };
    answer: WebhookAttempt;
  };
  /**
   * Deliver events again. The events of a span of time (`from` and, if not until now, `to`), or all after an event
   * (`after_event_id`), as the webhook selects them now, and messages that came in at that time. A span comes
   * first, in its order and under its original ids; then the webhook resumes where it was, and `replay` shows the
   * progress. Up to now, the webhook's own position moves back, and there is no `replay`. An `after_event_id`
   * ahead of that position skips what lies between, such as an event that the receiver cannot process
   * (`blocked_by`), and the webhook is called at once. Another replay replaces one that has not ended. Needs a key
   * with the scope `manage`.
   */
  replayWebhookEvents: {
    path: {
      /** The webhook's id. */
      id: string;
    };
    body: {
      /** an ISO 8601 time with its zone, such as 2026-11-21T08:00:00Z (the first moment) */
      from?: string | null;
      /** an ISO 8601 time with its zone, such as 2026-11-21T08:00:00Z (the moment after the last; by default now) */
      to?: string | null;
      /** an event id, behind which everything is told again */
      after_event_id?: number | null;
    };
    answer: Webhook;
  };
  /**
   * Enable a webhook that was disabled. It goes on where it stopped. One that waits for a repeat is called at
   * once. Needs a key with the scope `manage`.
   */
  enableWebhook: {
    path: {
      /** The webhook's id. */
      id: string;
    };
    answer: Webhook;
  };
  /**
   * A webhook's latest calls, newest first. About the last 500 of the last seven days. Where many calls a second
   * succeed, some are left out. Needs a key with the scope `read`.
   */
  listWebhookAttempts: {
    path: {
      /** The webhook's id. */
      id: string;
    };
    query?: {
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
    };
    answer: WebhookAttemptPage;
  };
  /** The webhooks of all tenants, and how their receivers do. */
  listTenantWebhooks: {
    query?: {
      /** Only webhooks of this tenant. */
      tenant?: string;
      /** Only webhooks in this state. */
      state?: "enabled" | "failing" | "disabled";
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
    };
    answer: TenantWebhookPage;
  };
  /**
   * Enable a tenant's webhook that was disabled. It goes on where it stopped. One that waits for a repeat is
   * called at once.
   */
  enableTenantWebhook: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The webhook's id. */
      webhook_id: string;
    };
    answer: Webhook;
  };
  /** Tell a tenant's webhook events again. As the tenant's own `POST /v1/webhooks/{id}/replay`. */
  replayTenantWebhook: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The webhook's id. */
      webhook_id: string;
    };
    body: {
      /** an ISO 8601 time with its zone, such as 2026-11-21T08:00:00Z (the first moment) */
      from?: string | null;
      /** an ISO 8601 time with its zone, such as 2026-11-21T08:00:00Z (the moment after the last; by default now) */
      to?: string | null;
      /** an event id, behind which everything is told again */
      after_event_id?: number | null;
    };
    answer: Webhook;
  };
  /**
   * Call a tenant's webhook now. With a signed `webhook.test` that stands for no event. Changes nothing but the
   * log of its calls.
   */
  testTenantWebhook: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The webhook's id. */
      webhook_id: string;
    };
    answer: WebhookAttempt;
  };
  /** The latest calls of a tenant's webhook, newest first. */
  listTenantWebhookAttempts: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The webhook's id. */
      webhook_id: string;
    };
    query?: {
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
    };
    answer: WebhookAttemptPage;
  };
  /**
   * Failed and bounced jobs of all tenants, grouped by cause. Of the jobs that were accepted in the range, which
   * has at most 92 days: the 200 largest groups. `GET /dash/api/tenants/{id}/jobs` with the same range and
   * `failure_class` has a group's jobs.
   */
  listFailures: {
    query?: {
      /** From this time on; by default, 24 hours ago. A UTC day or a time (RFC 3339). */
      from?: string;
      /** Up to this time, or to the end of this day; by default, now. A UTC day or a time (RFC 3339). */
      to?: string;
    };
    answer: FailureGroupList;
  };
  /**
   * How much went through with all tenants. By the minute for up to six hours of the last two days, by the hour
   * for up to eight days, else by the UTC day, for at most 92 days. The first interval begins at or before `from`;
   * the last one may still be running.
   */
  getRates: {
    query?: {
      /** From this time on; by default, 24 hours ago. A UTC day or a time (RFC 3339). */
      from?: string;
      /** Up to this time, or to the end of this day; by default, now. A UTC day or a time (RFC 3339). */
      to?: string;
    };
    answer: Rates;
  };
  /**
   * Sums of the tenant's events, and rates. By the day an event was recorded, so a rate of yesterday can still
   * rise. Events about copies count: a mail to three has one `sent` and up to three `delivered`. `opened` and
   * `clicked` are people's; machines' are `machine_opened` and `machine_clicked`. By time and channel at any
   * volume and for 366 days (by the hour 31); by domain, template and tag, and in zones that are half an hour off,
   * for 31 days with at most 2,000,000 events. Needs a key with the scope `read`.
   */
  getMetrics: {
    query: {
      /**
       * The metrics to show, separated by commas: sent, delivered, read, opened, clicked, bounced, complained, failed,
       * suppressed, machine_opened, machine_clicked, delivery_rate, open_rate, click_rate, read_rate, bounce_rate,
       * complaint_rate. Without it: all.
       */
      metrics?: string;
      /** First day, inclusive. */
      from: string;
      /** Last day, inclusive. */
      to: string;
      /** Without it: all days together. */
      interval?: "hour" | "day" | "week" | "month";
      /** Without it: all messages together. A message counts for each of its tags. */
      group_by?: "channel" | "domain" | "template" | "tag";
      /** Only this channel. */
      channel?: "email" | "whatsapp" | "wallet";
      /** IANA name of the zone whose days count. */
      timezone?: string;
    };
    answer: Metrics;
  };
  /**
   * Download the events of some days. All channels, ordered by `tenant_id` and `event_id`: `tenant_id`,
   * `event_id`, `created_at` (UTC, with milliseconds), `job_id`, `channel`, `event_type`, `result` (an object in
   * ndjson, its JSON text in CSV and Parquet), `failure_class` (of `failed` and `bounced`, otherwise empty).
   * Events that were there when it began are in it once. An answer that breaks off is no whole file: the
   * connection is closed before its end, and clients report that. One export at a time runs in a process.
   */
  exportEvents: {
    query: {
      /** First UTC day. */
      from: string;
      /** Last UTC day. At most 366 days in all. */
      to: string;
      /** A tenant's id, also of one that was deleted; all tenants without it. */
      tenant?: string;
      /** The format of the file. */
      format?: "ndjson" | "csv" | "parquet";
    };
    answer: ReadableStream<Uint8Array<ArrayBuffer>>;
  };
  /** Create a tenant. */
  createTenant: {
    body: {
      /** 1 to 200 characters without control characters */
      name: string;
      /** a slug of 1 to 63 lower-case letters, digits and hyphens, which does not begin with a hyphen */
      id?: string | null;
      /** the name of a plan */
      plan?: string | null;
      /** a list of channels, each once */
      channels?: readonly ("email" | "whatsapp" | "wallet")[] | null;
      /** a list of permissions, each once */
      permissions?: readonly "allow_raw_html"[] | null;
      /** a list of channels, each once */
      allow_custom?: readonly ("email" | "whatsapp" | "wallet")[] | null;
      /** an object with opens and clicks, each true or false: of e-mails, where neither message nor template says */
      tracking?: {
        /** whether there is a pixel */
        opens?: boolean | null;
        /** whether links lead by us */
        clicks?: boolean | null;
      } | null;
      /** an integer from 0 to 1000000000 */
      tokens?: number | null;
    };
    answer: Tenant;
  };
  /** List the tenants. */
  listTenants: {
    query?: {
      /** Only tenants whose id or name has this part, in capitals or not. */
      find?: string;
      /** Only tenants of this plan. */
      plan?: string;
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
    };
    answer: TenantPage;
  };
  /** One tenant. */
  getTenant: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: Tenant;
  };
  /** Change a tenant. `tokens` is the new balance; the difference is a movement. The id cannot be changed. */
  changeTenant: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** a slug of 1 to 63 lower-case letters, digits and hyphens, which does not begin with a hyphen */
      id?: string | null;
      /** 1 to 200 characters without control characters */
      name?: string | null;
      /** the name of a plan */
      plan?: string | null;
      /** a list of channels, each once */
      channels?: readonly ("email" | "whatsapp" | "wallet")[] | null;
      /** a list of permissions, each once */
      permissions?: readonly "allow_raw_html"[] | null;
      /** a list of channels, each once */
      allow_custom?: readonly ("email" | "whatsapp" | "wallet")[] | null;
      /** an object with opens and clicks, each true or false: of e-mails, where neither message nor template says */
      tracking?: {
        /** whether there is a pixel */
        opens?: boolean | null;
        /** whether links lead by us */
        clicks?: boolean | null;
      } | null;
      /** an integer from 0 to 1000000000 */
      tokens?: number | null;
    };
    answer: Tenant;
  };
  /**
   * Delete a tenant for good. Its keys are refused from the answer on, elsewhere within a second. Then everything
   * that it has is removed in the background: jobs, history, templates, credentials, domains, passes, devices,
   * webhooks, suppressions. Its bills stay, and its id is not given out again. Repeat the call to see how far it
   * is.
   */
  deleteTenant: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    query: {
      /** The tenant's id once more. */
      confirm: string;
      /** Whether unfinished jobs end as `failed`; without it they are a reason not to delete. */
      purge?: "true" | "false";
    };
    answer: TenantDeletion;
  };
  /**
   * Pause a tenant's deliveries. Accepted messages wait and cost no attempts; new ones are accepted. Deliveries in
   * flight end.
   */
  pauseTenant: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** a list of channels, each once */
      channels?: readonly ("email" | "whatsapp" | "wallet")[] | null;
    };
    answer: Tenant;
  };
  /** Resume a tenant's deliveries. They go on at once. */
  resumeTenant: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** a list of channels, each once */
      channels?: readonly ("email" | "whatsapp" | "wallet")[] | null;
    };
    answer: Tenant;
  };
  /**
   * Refuse a tenant's new sends. They are answered with 403; operators can still test its templates. Accepted
   * messages are still delivered.
   */
  holdTenant: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** a list of channels, each once */
      channels?: readonly ("email" | "whatsapp" | "wallet")[] | null;
    };
    answer: Tenant;
  };
  /** Accept a tenant's sends again. From the answer on, elsewhere within a second. */
  releaseTenant: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** a list of channels, each once */
      channels?: readonly ("email" | "whatsapp" | "wallet")[] | null;
    };
    answer: Tenant;
  };
  /**
   * End a tenant's unfinished jobs. Jobs accepted so far end as `failed` with the error `purged by an operator`,
   * also while the tenant is paused; tokens are given back. Deliveries in flight end as they end.
   */
  purgeTenant: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** a list of channels, each once */
      channels?: readonly ("email" | "whatsapp" | "wallet")[] | null;
    };
    answer: Purge;
  };
  /** A tenant's bounce and complaint rates, and what follows from them. */
  getReputation: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: TenantReputation;
  };
  /**
   * Choose how a tenant is governed. In force within two minutes: a level that the new mode does not allow ends
   * then.
   */
  putReputationGovernor: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** one of on, warn, off, or null for REPUTATION_GOVERNOR */
      governor: "on" | "warn" | "off" | null;
    };
    answer: TenantReputation;
  };
  /**
   * Release a tenant's e-mail from the governor. Its pace and its sends are as before from the answer on,
   * elsewhere within a second. What happened until now no longer counts; what happens from now on does. A hold by
   * an operator stays.
   */
  releaseReputation: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: TenantReputation;
  };
  /**
   * Make a key, which is shown this once. Requests with a key that has expired are refused with 401. Without
   * `scopes` an operator's key allows everything, and a tenant's what the calling key does, which is also the most
   * it can. Tenants make up to 100 keys.
   */
  createKey: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body?: {
      /** 1 to 100 characters without control characters */
      name?: string | null;
      /** a time to come, as 2027-01-01T00:00:00Z */
      expires_at?: string | null;
      /** a list of send, read, manage, each once, at least one */
      scopes?: readonly ("send" | "read" | "manage")[] | null;
    };
    answer: NewKey;
  };
  /** List a tenant's keys, without the keys themselves. */
  listKeys: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: KeyList;
  };
  /**
   * Make a key, which is shown this once. Requests with a key that has expired are refused with 401. Without
   * `scopes` an operator's key allows everything, and a tenant's what the calling key does, which is also the most
   * it can. Tenants make up to 100 keys. Needs a key with the scope `manage`.
   */
  createOwnKey: {
    body?: {
      /** 1 to 100 characters without control characters */
      name?: string | null;
      /** a time to come, as 2027-01-01T00:00:00Z */
      expires_at?: string | null;
      /** a list of send, read, manage, each once, at least one */
      scopes?: readonly ("send" | "read" | "manage")[] | null;
    };
    answer: NewKey;
  };
  /** List a tenant's keys, without the keys themselves. Needs a key with the scope `manage`. */
  listOwnKeys: { answer: KeyList };
  /**
   * Revoke a key, on every process within a second. Only an operator can revoke the last key that allows `manage`
   * and has not expired.
   */
  revokeKey: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The key's id. */
      key_id: string;
    };
    answer: null;
  };
  /**
   * Revoke a key, on every process within a second. Only an operator can revoke the last key that allows `manage`
   * and has not expired. Needs a key with the scope `manage`.
   */
  revokeOwnKey: {
    path: {
      /** The key's id. */
      key_id: string;
    };
    answer: null;
  };
  /** List a tenant's templates. */
  listTemplates: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: TemplateList;
  };
  /** List a tenant's templates. Needs a key with the scope `read`. */
  listOwnTemplates: { answer: TemplateList };
  /** Create or replace a template of an e-mail or a pass. */
  putTemplate: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The template's slug, for `template_id`. */
      slug: string;
    };
    body:
      | {
          /** email or wallet */
          channel: "email";
          /** at most 998 characters without control characters */
          subject: string;
          /** HTML of 1 to 524288 characters */
          html: string;
          /** plain text of at most 524288 characters, or null */
          text?: string | null;
          /**
           * the topic of messages that do not name one: 1 to 64 letters, digits, blanks and _ - . , & + ' (at most 128
           * bytes), and begins with a letter or digit; or null
           */
          topic?: string | null;
          /** an object with opens and clicks, each true or false */
          tracking?: {
            /** whether there is a pixel */
            opens?: boolean | null;
            /** whether links lead by us */
            clicks?: boolean | null;
          } | null;
        }
      | ({
          /** email or wallet */
          channel: "wallet";
          /** apple or google */
          pass_type: "apple" | "google";
          /** an object: what requests leave out of their pass_data */
          pass_data: JsonObject;
          /** one of eventTicket, boardingPass, coupon, storeCard, generic, posterGeneric; type apple only */
          style?: ("eventTicket" | "boardingPass" | "coupon" | "storeCard" | "generic" | "posterGeneric") | null;
        } & (
          | { pass_type?: "apple"; pass_data?: ApplePassPart }
          | ({ pass_type?: "google"; pass_data?: GooglePassPart } & { style?: never })
        ));
    answer: Template;
  };
  /** One template. */
  getTemplate: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The template's slug, for `template_id`. */
      slug: string;
    };
    answer: Template;
  };
  /** Delete a template. */
  deleteTemplate: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The template's slug, for `template_id`. */
      slug: string;
    };
    answer: null;
  };
  /** Create or replace a template of an e-mail or a pass. Needs a key with the scope `manage`. */
  putOwnTemplate: {
    path: {
      /** The template's slug, for `template_id`. */
      slug: string;
    };
    body:
      | {
          /** email or wallet */
          channel: "email";
          /** at most 998 characters without control characters */
          subject: string;
          /** HTML of 1 to 524288 characters */
          html: string;
          /** plain text of at most 524288 characters, or null */
          text?: string | null;
          /**
           * the topic of messages that do not name one: 1 to 64 letters, digits, blanks and _ - . , & + ' (at most 128
           * bytes), and begins with a letter or digit; or null
           */
          topic?: string | null;
          /** an object with opens and clicks, each true or false */
          tracking?: {
            /** whether there is a pixel */
            opens?: boolean | null;
            /** whether links lead by us */
            clicks?: boolean | null;
          } | null;
        }
      | ({
          /** email or wallet */
          channel: "wallet";
          /** apple or google */
          pass_type: "apple" | "google";
          /** an object: what requests leave out of their pass_data */
          pass_data: JsonObject;
          /** one of eventTicket, boardingPass, coupon, storeCard, generic, posterGeneric; type apple only */
          style?: ("eventTicket" | "boardingPass" | "coupon" | "storeCard" | "generic" | "posterGeneric") | null;
        } & (
          | { pass_type?: "apple"; pass_data?: ApplePassPart }
          | ({ pass_type?: "google"; pass_data?: GooglePassPart } & { style?: never })
        ));
    answer: Template;
  };
  /** One template. Needs a key with the scope `read`. */
  getOwnTemplate: {
    path: {
      /** The template's slug, for `template_id`. */
      slug: string;
    };
    answer: Template;
  };
  /** Delete a template. Needs a key with the scope `manage`. */
  deleteOwnTemplate: {
    path: {
      /** The template's slug, for `template_id`. */
      slug: string;
    };
    answer: null;
  };
  /** Preview a template with the given values, without sending or storing. */
  previewTemplate: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The template's slug, for `template_id`. */
      slug: string;
    };
    body: {
      /** an object: the values of the placeholders, or the pass_data to lay over a pass template */
      data?: JsonObject | null;
    };
    answer: TemplatePreview;
  };
  /** Preview a template with the given values, without sending or storing. Needs a key with the scope `read`. */
  previewOwnTemplate: {
    path: {
      /** The template's slug, for `template_id`. */
      slug: string;
    };
    body: {
      /** an object: the values of the placeholders, or the pass_data to lay over a pass template */
      data?: JsonObject | null;
    };
    answer: TemplatePreview;
  };
  /**
   * Send one message made of a template. Queues a job of the tenant, as a send of its own does: with its sender,
   * suppressions and share of the queue. An operator's call does not count against the tenant's rate limit.
   */
  testTemplate: {
    path: {
      /** A tenant's id. */
      id: string;
      /** The template's slug, for `template_id`. */
      slug: string;
    };
    body: {
      /**
       * One address (RFC 5321), no list, no display name, and no % or ! before the @, which some mail servers read as
       * a way to another domain. Internationalised domains are taken in either form; letters beyond ASCII before the @
       * need a relay with SMTPUTF8.
       */
      to_address: string;
      /** The recipient's display name. */
      to_name?: string | null;
      /** Values for the placeholders of body and subject. */
      data?: JsonObject | null;
    };
    answer: PendingJob;
  };
  /**
   * Send one message made of a template. Queues a job of the tenant, as a send of its own does: with its sender,
   * suppressions and share of the queue. An operator's call does not count against the tenant's rate limit. Needs
   * a key with the scope `send`.
   */
  testOwnTemplate: {
    path: {
      /** The template's slug, for `template_id`. */
      slug: string;
    };
    body: {
      /**
       * One address (RFC 5321), no list, no display name, and no % or ! before the @, which some mail servers read as
       * a way to another domain. Internationalised domains are taken in either form; letters beyond ASCII before the @
       * need a relay with SMTPUTF8.
       */
      to_address: string;
      /** The recipient's display name. */
      to_name?: string | null;
      /** Values for the placeholders of body and subject. */
      data?: JsonObject | null;
    };
    answer: PendingJob;
  };
  /** List a tenant's own credentials, without their secrets. */
  listCredentials: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    answer: CredentialsList;
  };
  /** Add tokens, or take them (a negative amount). */
  addTokens: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** an integer other than 0, up to 1000000000 either way */
      amount: number;
      /** 1 to 200 characters without control characters */
      reason: string;
    };
    answer: Balance;
  };
  /** Charges and top-ups, newest first. */
  listTokenMovements: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    query?: {
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
    };
    answer: TokenMovementPage;
  };
  /**
   * A tenant's usage by month. By UTC month. `sent`, `delivered`, `bounced`, `failed` and `suppressed` count
   * events in the month of their own time, exactly; tokens are the ledger's: `tokens_billed` is what passes were
   * charged less what was given back, `tokens_topped_up` and `tokens_taken` are operators' own movements.
   * `api_calls` and `accepted` count the tenant's authenticated calls and those answered with a new job (messages
   * of a batch one by one, updates of passes included); they are up to 5 seconds behind, and a process that is
   * killed loses those of its last 5 seconds. As CSV with `format=csv` or `Accept: text/csv`.
   */
  getTenantUsage: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    query?: {
      /** First month; by default `to`, or else this one. */
      from?: string;
      /** Last month; by default this one. At most 36 months in all. */
      to?: string;
      /** By default as `Accept` requests. */
      format?: "json" | "csv";
    };
    answer: TenantUsage;
  };
  /**
   * All tenants' usage in a month. By UTC month. `sent`, `delivered`, `bounced`, `failed` and `suppressed` count
   * events in the month of their own time, exactly; tokens are the ledger's: `tokens_billed` is what passes were
   * charged less what was given back, `tokens_topped_up` and `tokens_taken` are operators' own movements.
   * `api_calls` and `accepted` count the tenant's authenticated calls and those answered with a new job (messages
   * of a batch one by one, updates of passes included); they are up to 5 seconds behind, and a process that is
   * killed loses those of its last 5 seconds. As CSV with `format=csv` or `Accept: text/csv`.
   */
  listUsage: {
    query?: {
      /** By default this one. */
      month?: string;
      /** By default as `Accept` requests. */
      format?: "json" | "csv";
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
    };
    answer: UsageList;
  };
  /** Whom the tenant's messages no longer go to, in the order of addresses. */
  listSuppressions: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    query?: {
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
      /** Only this address, with each of its topics. */
      address?: string;
    };
    answer: SuppressionPage;
  };
  /** Whom the tenant's messages no longer go to, in the order of addresses. Needs a key with the scope `read`. */
  listOwnSuppressions: {
    query?: {
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
      /** Only this address, with each of its topics. */
      address?: string;
    };
    answer: SuppressionPage;
  };
  /** Suppress an address: no message is sent to it any more. */
  putSuppression: {
    path: {
      /** A tenant's id. */
      id: string;
      /** One e-mail address, phone number or WhatsApp user id, escaped. */
      address: string;
    };
    body: {
      /** one of unsubscribed, bounced, complained, manual; by default manual */
      reason?: ("unsubscribed" | "bounced" | "complained" | "manual") | null;
      /**
       * 1 to 64 letters, digits, blanks and _ - . , & + ' (at most 128 bytes), and begins with a letter or digit;
       * absent: messages on all topics, and those without one
       */
      topic?: string | null;
    };
    answer: Suppression;
  };
  /** Whether the tenant's messages no longer go to this address, and why. */
  getSuppression: {
    path: {
      /** A tenant's id. */
      id: string;
      /** One e-mail address, phone number or WhatsApp user id, escaped. */
      address: string;
    };
    query?: {
      /** The suppression for this topic alone; absent: the one for all messages. */
      topic?: string;
    };
    answer: Suppression;
  };
  /** Send to this address again. */
  deleteSuppression: {
    path: {
      /** A tenant's id. */
      id: string;
      /** One e-mail address, phone number or WhatsApp user id, escaped. */
      address: string;
    };
    query?: {
      /** The suppression for this topic alone; absent: the one for all messages. */
      topic?: string;
    };
    answer: null;
  };
  /**
   * Suppress an address: no message is sent to it any more. A tenant adds up to 1,000,000 addresses, beside those
   * that recipients and bounces do. Needs a key with the scope `manage`.
   */
  putOwnSuppression: {
    path: {
      /** One e-mail address, phone number or WhatsApp user id, escaped. */
      address: string;
    };
    body: {
      /** one of unsubscribed, bounced, complained, manual; by default manual */
      reason?: ("unsubscribed" | "bounced" | "complained" | "manual") | null;
      /**
       * 1 to 64 letters, digits, blanks and _ - . , & + ' (at most 128 bytes), and begins with a letter or digit;
       * absent: messages on all topics, and those without one
       */
      topic?: string | null;
    };
    answer: Suppression;
  };
  /** Whether the tenant's messages no longer go to this address, and why. Needs a key with the scope `read`. */
  getOwnSuppression: {
    path: {
      /** One e-mail address, phone number or WhatsApp user id, escaped. */
      address: string;
    };
    query?: {
      /** The suppression for this topic alone; absent: the one for all messages. */
      topic?: string;
    };
    answer: Suppression;
  };
  /** Send to this address again. Needs a key with the scope `manage`. */
  deleteOwnSuppression: {
    path: {
      /** One e-mail address, phone number or WhatsApp user id, escaped. */
      address: string;
    };
    query?: {
      /** The suppression for this topic alone; absent: the one for all messages. */
      topic?: string;
    };
    answer: null;
  };
  /**
   * Erase a recipient. Erases the recipient from the queue, the history, the list of suppressions, where a keyed
   * hash keeps a suppression in force, and the sandbox, for all tenants. Counts and sums stay, and so do passes,
   * messages that people wrote, and data that cannot be read (docs/privacy.md). Safe to repeat.
   */
  eraseRecipient: {
    path: {
      /** A tenant's id. */
      id: string;
    };
    body: {
      /** one e-mail address or phone number */
      recipient: string;
      /** true: nothing is sent to the recipient any more, under a keyed hash */
      suppress?: boolean | null;
    };
    answer: Erasure;
  };
  /** List the plans. */
  listPlans: { answer: PlanList };
  /** Create or change a plan; a share of the queue that is left out is the default. */
  putPlan: {
    path: {
      /** A slug. */
      name: string;
    };
    body: {
      /** an integer from 1 to 60000000 */
      requests_per_minute: number;
      /** a number above 0, or null for as fast as the provider takes them */
      deliveries_per_second?: number | null;
      /** an integer from 1 to 1000000000 */
      queued_jobs_max?: number | null;
      /** an integer from 1 to 1099511627776 */
      queued_bytes_max?: number | null;
      /** an integer from 1 to 168 */
      hold_hours?: number | null;
    };
    answer: Plan;
  };
  /** Add an operator, whose token is shown this once. */
  createOperator: {
    body: {
      /** 1 to 100 characters without control characters */
      name: string;
      /** one of read, write */
      role: "read" | "write";
    };
    answer: NewOperator;
  };
  /** List the operators, without their tokens. All but `root`, whose token is the setting `OPERATOR_TOKEN`. */
  listOperators: { answer: OperatorList };
  /** Delete an operator; the token is refused on every process within a second. */
  deleteOperator: {
    path: {
      /** The operator's id. */
      id: string;
    };
    answer: null;
  };
  /**
   * Begin a session in a browser. The session is a cookie for `/dash`, which takes the token's place for 12 hours.
   * It ends at once when the operator is deleted. With the cookie, calls other than GET also need the header
   * `X-Waybill-Dashboard: 1`.
   */
  signIn: {
    body: {
      /** an operator's token */
      token: string;
    };
    answer: null;
  };
  /** Show the calling operator. */
  getSession: { answer: Session };
  /** End the session in this browser. */
  signOut: { answer: null };
  /**
   * List the changes by operators and by tenants themselves, newest first, of the last 400 days. One row for each
   * call of an operator that is not a read, whatever its result, and for each change that a tenant made to its
   * data (keys, templates, webhooks, …). These have no row: calls refused for their token or role, a tenant's
   * calls that were refused before they did anything, sign-ins, verifications of a domain, and `POST
   * /dash/api/mail-reports`. A tenant's own calls have a row each, up to 10,000 per day and process, and up to 100
   * that were refused; further ones are counted in one row for each operation and status (`calls`).
   */
  listAudit: {
    query?: {
      /** Only of the operator of this name. */
      operator?: string;
      /** Only about this tenant. */
      tenant?: string;
      /** Only calls of this operationId. */
      action?: string;
      /** Not before this UTC day or time. */
      from?: string;
      /** Up to the end of this UTC day, or before this time. */
      to?: string;
      /** The `next_cursor` of the previous page. */
      cursor?: string;
      /** Page size; above 500 counts as 500. */
      limit?: number;
    };
    answer: AuditPage;
  };
  /**
   * How the whole service is. At most two seconds old (rates seven, and counts of the registry half a minute), and
   * answered within two seconds: what a store does not say in time is null or left out, and `alarms` says why.
   */
  getOverview: { answer: Overview };
  /**
   * The overview, as it changes. Server-sent events: each has the overview as its data. One comes at once, and
   * then one every two seconds while the overview changes; a comment every 15 seconds shows that the connection
   * lives.
   */
  followOverview: { answer: ReadableStream<Uint8Array<ArrayBuffer>> };
  /** List the messages that the sandbox received, newest first. */
  listSandboxMessages: {
    query?: {
      /** Only to this address. */
      to?: string;
      /** At most this many; above 500 counts as 500. */
      limit?: number;
    };
    answer: SandboxMessages;
  };
  /** List the complaints of devices to this process, newest first. */
  listDeviceComplaints: {
    query?: {
      /** At most this many; above 500 counts as 500. */
      limit?: number;
    };
    answer: DeviceComplaints;
  };
  /** The operators' page. */
  dashboard: { answer: ReadableStream<Uint8Array<ArrayBuffer>> };
  /** Part of the operators' page. */
  dashboardFile: {
    path: {
      /** As the page names it. */
      file: string;
    };
    answer: ReadableStream<Uint8Array<ArrayBuffer>>;
  };
  /** Whether the process lives. */
  health: { answer: Health };
  /** Whether every dependency is up. */
  ready: { answer: Ready };
  /** Metrics in the Prometheus text format. */
  metrics: { answer: ReadableStream<Uint8Array<ArrayBuffer>> };
  /** Where to report a vulnerability (RFC 9116). */
  securityTxt: { answer: ReadableStream<Uint8Array<ArrayBuffer>> };
  /** This document. */
  openapi: {
    query?: {
      /** The caller whose operations are described: a tenant with its key, an operator, or all. */
      for?: "all" | "tenant" | "operator";
    };
    answer: {
      openapi: string;
      info: { title: string; version: string } & JsonObject;
      servers: readonly { url: string }[];
      /** Path items, by path. */
      paths: JsonObject;
      components: JsonObject;
    } & JsonObject;
  };
  /** This document, rendered. */
  docs: {
    query?: {
      /** The caller whose operations are described: a tenant with its key, an operator, or all. */
      for?: "all" | "tenant" | "operator";
    };
    answer: ReadableStream<Uint8Array<ArrayBuffer>>;
  };
  /** A part of the page: start.js. */
  docsStart: { answer: ReadableStream<Uint8Array<ArrayBuffer>> };
  /** A part of the page: swagger-ui-bundle.js. */
  docsScript: { answer: ReadableStream<Uint8Array<ArrayBuffer>> };
  /** A part of the page: swagger-ui.css. */
  docsStyle: { answer: ReadableStream<Uint8Array<ArrayBuffer>> };
  /** A part of the page: favicon.png. */
  docsIcon: { answer: ReadableStream<Uint8Array<ArrayBuffer>> };
};

/** How an operation is called. */
export type Call = {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  /** Whether to repeat it when its effect is unknown: yes, with an Idempotency-Key, or no. */
  readonly repeat: "safe" | "with_key" | "unsafe";
  /** The media type of its body, if that is not JSON. */
  readonly sends?: string;
  /** Its answer is not JSON. */
  readonly streams?: true;
};

export const OPERATIONS: { readonly [N in keyof Operations]: Call } = {
  sendEmail: { method: "POST", path: "/v1/send/email", repeat: "with_key" },
  sendEmailBatch: { method: "POST", path: "/v1/send/email/batch", repeat: "with_key" },
  listDomains: { method: "GET", path: "/v1/domains", repeat: "safe" },
  getDomain: { method: "GET", path: "/v1/domains/{domain}", repeat: "safe" },
  verifyDomain: { method: "POST", path: "/v1/domains/{domain}/verify", repeat: "unsafe" },
  listTenantDomains: { method: "GET", path: "/dash/api/tenants/{id}/domains", repeat: "safe" },
  registerDomain: { method: "POST", path: "/dash/api/tenants/{id}/domains", repeat: "unsafe" },
  getTenantDomain: { method: "GET", path: "/dash/api/tenants/{id}/domains/{domain}", repeat: "safe" },
  deleteDomain: { method: "DELETE", path: "/dash/api/tenants/{id}/domains/{domain}", repeat: "safe" },
  verifyTenantDomain: { method: "POST", path: "/dash/api/tenants/{id}/domains/{domain}/verify", repeat: "unsafe" },
  getSenderDomain: { method: "GET", path: "/dash/api/sender-domain", repeat: "safe" },
  verifySenderDomain: { method: "POST", path: "/dash/api/sender-domain/verify", repeat: "unsafe" },
  putEmailCredentials: { method: "PUT", path: "/dash/api/tenants/{id}/credentials/email", repeat: "safe" },
  getEmailCredentials: { method: "GET", path: "/dash/api/tenants/{id}/credentials/email", repeat: "safe" },
  deleteEmailCredentials: { method: "DELETE", path: "/dash/api/tenants/{id}/credentials/email", repeat: "safe" },
  takeMailReport: { method: "POST", path: "/dash/api/mail-reports", repeat: "unsafe", sends: "message/rfc822" },
  trackOpen: { method: "GET", path: "/t/o/{token}.gif", repeat: "safe", streams: true },
  trackClick: { method: "GET", path: "/t/c/{token}", repeat: "safe" },
  askUnsubscribe: { method: "GET", path: "/u/{token}", repeat: "safe", streams: true },
  unsubscribe: {
    method: "POST",
    path: "/u/{token}",
    repeat: "unsafe",
    sends: "application/x-www-form-urlencoded",
    streams: true,
  },
  sendWhatsapp: { method: "POST", path: "/v1/send/whatsapp", repeat: "with_key" },
  sendWhatsappBatch: { method: "POST", path: "/v1/send/whatsapp/batch", repeat: "with_key" },
  listAliases: { method: "GET", path: "/dash/api/tenants/{id}/aliases", repeat: "safe" },
  listOwnAliases: { method: "GET", path: "/v1/aliases", repeat: "safe" },
  putAlias: { method: "PUT", path: "/dash/api/tenants/{id}/aliases/{alias}", repeat: "safe" },
  getAlias: { method: "GET", path: "/dash/api/tenants/{id}/aliases/{alias}", repeat: "safe" },
  deleteAlias: { method: "DELETE", path: "/dash/api/tenants/{id}/aliases/{alias}", repeat: "safe" },
  putOwnAlias: { method: "PUT", path: "/v1/aliases/{alias}", repeat: "safe" },
  getOwnAlias: { method: "GET", path: "/v1/aliases/{alias}", repeat: "safe" },
  deleteOwnAlias: { method: "DELETE", path: "/v1/aliases/{alias}", repeat: "safe" },
  listChatTemplates: { method: "GET", path: "/dash/api/tenants/{id}/whatsapp/templates", repeat: "safe" },
  listOwnChatTemplates: { method: "GET", path: "/v1/whatsapp/templates", repeat: "safe" },
  syncChatTemplates: { method: "POST", path: "/dash/api/tenants/{id}/whatsapp/templates/sync", repeat: "unsafe" },
  syncOwnChatTemplates: { method: "POST", path: "/v1/whatsapp/templates/sync", repeat: "unsafe" },
  putWhatsappCredentials: { method: "PUT", path: "/dash/api/tenants/{id}/credentials/whatsapp", repeat: "safe" },
  getWhatsappCredentials: { method: "GET", path: "/dash/api/tenants/{id}/credentials/whatsapp", repeat: "safe" },
  deleteWhatsappCredentials: { method: "DELETE", path: "/dash/api/tenants/{id}/credentials/whatsapp", repeat: "safe" },
  listIncomingMessages: { method: "GET", path: "/dash/api/whatsapp/messages", repeat: "safe" },
  answerWhatsappChallenge: { method: "GET", path: "/webhook/whatsapp", repeat: "safe", streams: true },
  takeWhatsappWebhook: { method: "POST", path: "/webhook/whatsapp", repeat: "unsafe" },
  sendWallet: { method: "POST", path: "/v1/send/wallet", repeat: "with_key" },
  createPass: { method: "POST", path: "/v1/passes/create", repeat: "with_key" },
  updatePass: { method: "PUT", path: "/v1/passes/{id}", repeat: "with_key" },
  downloadPass: { method: "GET", path: "/v1/passes/{id}/download", repeat: "safe", streams: true },
  getPassStatus: { method: "GET", path: "/v1/passes/{id}/status", repeat: "safe" },
  linkPasses: { method: "POST", path: "/v1/passes/link", repeat: "unsafe" },
  createGoogleClass: { method: "POST", path: "/v1/google/classes", repeat: "unsafe" },
  changeGoogleClass: { method: "PUT", path: "/v1/google/classes/{id}", repeat: "safe" },
  getGoogleClass: { method: "GET", path: "/v1/google/classes/{id}", repeat: "safe" },
  takeGoogleCallback: { method: "POST", path: "/webhook/google-wallet", repeat: "unsafe" },
  registerDevice: {
    method: "POST",
    path: "/wallet/v1/devices/{device}/registrations/{passType}/{serial}",
    repeat: "unsafe",
  },
  unregisterDevice: {
    method: "DELETE",
    path: "/wallet/v1/devices/{device}/registrations/{passType}/{serial}",
    repeat: "safe",
  },
  listUpdatedPasses: { method: "GET", path: "/wallet/v1/devices/{device}/registrations/{passType}", repeat: "safe" },
  getLatestPass: { method: "GET", path: "/wallet/v1/passes/{passType}/{serial}", repeat: "safe", streams: true },
  logDeviceComplaint: { method: "POST", path: "/wallet/v1/log", repeat: "unsafe" },
  personalizePass: {
    method: "POST",
    path: "/wallet/v1/passes/{passType}/{serial}/personalize",
    repeat: "unsafe",
    streams: true,
  },
  getPassFile: { method: "GET", path: "/p/{token}", repeat: "safe", streams: true },
  putAppleCredentials: { method: "PUT", path: "/dash/api/tenants/{id}/credentials/apple", repeat: "safe" },
  getAppleCredentials: { method: "GET", path: "/dash/api/tenants/{id}/credentials/apple", repeat: "safe" },
  deleteAppleCredentials: { method: "DELETE", path: "/dash/api/tenants/{id}/credentials/apple", repeat: "safe" },
  putGoogleCredentials: { method: "PUT", path: "/dash/api/tenants/{id}/credentials/google", repeat: "safe" },
  getGoogleCredentials: { method: "GET", path: "/dash/api/tenants/{id}/credentials/google", repeat: "safe" },
  deleteGoogleCredentials: { method: "DELETE", path: "/dash/api/tenants/{id}/credentials/google", repeat: "safe" },
  putWalletWebhook: { method: "PUT", path: "/dash/api/tenants/{id}/wallet-webhook", repeat: "safe" },
  rescheduleJob: { method: "PATCH", path: "/v1/jobs/{id}", repeat: "unsafe" },
  getJob: { method: "GET", path: "/v1/jobs/{id}", repeat: "safe" },
  cancelJob: { method: "POST", path: "/v1/jobs/{id}/cancel", repeat: "unsafe" },
  getJobEvents: { method: "GET", path: "/v1/jobs/{id}/events", repeat: "safe" },
  listOwnJobs: { method: "GET", path: "/v1/jobs", repeat: "safe" },
  explainJob: { method: "GET", path: "/v1/jobs/{id}/explain", repeat: "safe" },
  listJobs: { method: "GET", path: "/dash/api/tenants/{id}/jobs", repeat: "safe" },
  getJobHistory: { method: "GET", path: "/dash/api/tenants/{id}/jobs/{job_id}", repeat: "safe" },
  searchJobs: { method: "GET", path: "/dash/api/jobs", repeat: "safe" },
  retryJob: { method: "POST", path: "/dash/api/tenants/{id}/jobs/{job_id}/retry", repeat: "unsafe" },
  retryJobs: { method: "POST", path: "/dash/api/tenants/{id}/jobs/retry", repeat: "unsafe" },
  getJobContent: { method: "GET", path: "/dash/api/tenants/{id}/jobs/{job_id}/content", repeat: "safe" },
  listEvents: { method: "GET", path: "/v1/events", repeat: "safe" },
  createWebhook: { method: "POST", path: "/v1/webhooks", repeat: "unsafe" },
  listWebhooks: { method: "GET", path: "/v1/webhooks", repeat: "safe" },
  getWebhook: { method: "GET", path: "/v1/webhooks/{id}", repeat: "safe" },
  changeWebhook: { method: "PATCH", path: "/v1/webhooks/{id}", repeat: "unsafe" },
  deleteWebhook: { method: "DELETE", path: "/v1/webhooks/{id}", repeat: "safe" },
  rotateWebhookSecret: { method: "POST", path: "/v1/webhooks/{id}/rotate-secret", repeat: "unsafe" },
  testWebhook: { method: "POST", path: "/v1/webhooks/{id}/test", repeat: "unsafe" },
  replayWebhookEvents: { method: "POST", path: "/v1/webhooks/{id}/replay", repeat: "unsafe" },
  enableWebhook: { method: "POST", path: "/v1/webhooks/{id}/enable", repeat: "unsafe" },
  listWebhookAttempts: { method: "GET", path: "/v1/webhooks/{id}/attempts", repeat: "safe" },
  listTenantWebhooks: { method: "GET", path: "/dash/api/webhooks", repeat: "safe" },
  enableTenantWebhook: {
    method: "POST",
    path: "/dash/api/tenants/{id}/webhooks/{webhook_id}/enable",
    repeat: "unsafe",
  },
  replayTenantWebhook: {
    method: "POST",
    path: "/dash/api/tenants/{id}/webhooks/{webhook_id}/replay",
    repeat: "unsafe",
  },
  testTenantWebhook: { method: "POST", path: "/dash/api/tenants/{id}/webhooks/{webhook_id}/test", repeat: "unsafe" },
  listTenantWebhookAttempts: {
    method: "GET",
    path: "/dash/api/tenants/{id}/webhooks/{webhook_id}/attempts",
    repeat: "safe",
  },
  listFailures: { method: "GET", path: "/dash/api/failures", repeat: "safe" },
  getRates: { method: "GET", path: "/dash/api/rates", repeat: "safe" },
  getMetrics: { method: "GET", path: "/v1/metrics", repeat: "safe" },
  exportEvents: { method: "GET", path: "/dash/api/export", repeat: "safe", streams: true },
  createTenant: { method: "POST", path: "/dash/api/tenants", repeat: "unsafe" },
  listTenants: { method: "GET", path: "/dash/api/tenants", repeat: "safe" },
  getTenant: { method: "GET", path: "/dash/api/tenants/{id}", repeat: "safe" },
  changeTenant: { method: "PATCH", path: "/dash/api/tenants/{id}", repeat: "unsafe" },
  deleteTenant: { method: "DELETE", path: "/dash/api/tenants/{id}", repeat: "unsafe" },
  pauseTenant: { method: "POST", path: "/dash/api/tenants/{id}/pause", repeat: "unsafe" },
  resumeTenant: { method: "POST", path: "/dash/api/tenants/{id}/resume", repeat: "unsafe" },
  holdTenant: { method: "POST", path: "/dash/api/tenants/{id}/hold", repeat: "unsafe" },
  releaseTenant: { method: "POST", path: "/dash/api/tenants/{id}/release", repeat: "unsafe" },
  purgeTenant: { method: "POST", path: "/dash/api/tenants/{id}/purge", repeat: "unsafe" },
  getReputation: { method: "GET", path: "/dash/api/tenants/{id}/reputation", repeat: "safe" },
  putReputationGovernor: { method: "PUT", path: "/dash/api/tenants/{id}/reputation", repeat: "safe" },
  releaseReputation: { method: "POST", path: "/dash/api/tenants/{id}/reputation/release", repeat: "unsafe" },
  createKey: { method: "POST", path: "/dash/api/tenants/{id}/keys", repeat: "unsafe" },
  listKeys: { method: "GET", path: "/dash/api/tenants/{id}/keys", repeat: "safe" },
  createOwnKey: { method: "POST", path: "/v1/keys", repeat: "unsafe" },
  listOwnKeys: { method: "GET", path: "/v1/keys", repeat: "safe" },
  revokeKey: { method: "DELETE", path: "/dash/api/tenants/{id}/keys/{key_id}", repeat: "safe" },
  revokeOwnKey: { method: "DELETE", path: "/v1/keys/{key_id}", repeat: "safe" },
  listTemplates: { method: "GET", path: "/dash/api/tenants/{id}/templates", repeat: "safe" },
  listOwnTemplates: { method: "GET", path: "/v1/templates", repeat: "safe" },
  putTemplate: { method: "PUT", path: "/dash/api/tenants/{id}/templates/{slug}", repeat: "safe" },
  getTemplate: { method: "GET", path: "/dash/api/tenants/{id}/templates/{slug}", repeat: "safe" },
  deleteTemplate: { method: "DELETE", path: "/dash/api/tenants/{id}/templates/{slug}", repeat: "safe" },
  putOwnTemplate: { method: "PUT", path: "/v1/templates/{slug}", repeat: "safe" },
  getOwnTemplate: { method: "GET", path: "/v1/templates/{slug}", repeat: "safe" },
  deleteOwnTemplate: { method: "DELETE", path: "/v1/templates/{slug}", repeat: "safe" },
  previewTemplate: { method: "POST", path: "/dash/api/tenants/{id}/templates/{slug}/preview", repeat: "unsafe" },
  previewOwnTemplate: { method: "POST", path: "/v1/templates/{slug}/preview", repeat: "unsafe" },
  testTemplate: { method: "POST", path: "/dash/api/tenants/{id}/templates/{slug}/test", repeat: "with_key" },
  testOwnTemplate: { method: "POST", path: "/v1/templates/{slug}/test", repeat: "with_key" },
  listCredentials: { method: "GET", path: "/dash/api/tenants/{id}/credentials", repeat: "safe" },
  addTokens: { method: "POST", path: "/dash/api/tenants/{id}/tokens", repeat: "unsafe" },
  listTokenMovements: { method: "GET", path: "/dash/api/tenants/{id}/tokens", repeat: "safe" },
  getTenantUsage: { method: "GET", path: "/dash/api/tenants/{id}/usage", repeat: "safe" },
  listUsage: { method: "GET", path: "/dash/api/usage", repeat: "safe" },
  listSuppressions: { method: "GET", path: "/dash/api/tenants/{id}/suppressions", repeat: "safe" },
  listOwnSuppressions: { method: "GET", path: "/v1/suppressions", repeat: "safe" },
  putSuppression: { method: "PUT", path: "/dash/api/tenants/{id}/suppressions/{address}", repeat: "safe" },
  getSuppression: { method: "GET", path: "/dash/api/tenants/{id}/suppressions/{address}", repeat: "safe" },
  deleteSuppression: { method: "DELETE", path: "/dash/api/tenants/{id}/suppressions/{address}", repeat: "safe" },
  putOwnSuppression: { method: "PUT", path: "/v1/suppressions/{address}", repeat: "safe" },
  getOwnSuppression: { method: "GET", path: "/v1/suppressions/{address}", repeat: "safe" },
  deleteOwnSuppression: { method: "DELETE", path: "/v1/suppressions/{address}", repeat: "safe" },
  eraseRecipient: { method: "POST", path: "/dash/api/tenants/{id}/erasures", repeat: "unsafe" },
  listPlans: { method: "GET", path: "/dash/api/plans", repeat: "safe" },
  putPlan: { method: "PUT", path: "/dash/api/plans/{name}", repeat: "safe" },
  createOperator: { method: "POST", path: "/dash/api/operators", repeat: "unsafe" },
  listOperators: { method: "GET", path: "/dash/api/operators", repeat: "safe" },
  deleteOperator: { method: "DELETE", path: "/dash/api/operators/{id}", repeat: "safe" },
  signIn: { method: "POST", path: "/dash/api/session", repeat: "unsafe" },
  getSession: { method: "GET", path: "/dash/api/session", repeat: "safe" },
  signOut: { method: "DELETE", path: "/dash/api/session", repeat: "safe" },
  listAudit: { method: "GET", path: "/dash/api/audit", repeat: "safe" },
  getOverview: { method: "GET", path: "/dash/api/overview", repeat: "safe" },
  followOverview: { method: "GET", path: "/dash/api/overview/live", repeat: "safe", streams: true },
  listSandboxMessages: { method: "GET", path: "/dash/api/sandbox/messages", repeat: "safe" },
  listDeviceComplaints: { method: "GET", path: "/dash/api/sandbox/device-log", repeat: "safe" },
  dashboard: { method: "GET", path: "/dash", repeat: "safe", streams: true },
  dashboardFile: { method: "GET", path: "/dash/assets/{file}", repeat: "safe", streams: true },
  health: { method: "GET", path: "/health", repeat: "safe" },
  ready: { method: "GET", path: "/ready", repeat: "safe" },
  metrics: { method: "GET", path: "/metrics", repeat: "safe", streams: true },
  securityTxt: { method: "GET", path: "/.well-known/security.txt", repeat: "safe", streams: true },
  openapi: { method: "GET", path: "/openapi.json", repeat: "safe" },
  docs: { method: "GET", path: "/docs", repeat: "safe", streams: true },
  docsStart: { method: "GET", path: "/docs/start.js", repeat: "safe", streams: true },
  docsScript: { method: "GET", path: "/docs/swagger-ui-bundle.js", repeat: "safe", streams: true },
  docsStyle: { method: "GET", path: "/docs/swagger-ui.css", repeat: "safe", streams: true },
  docsIcon: { method: "GET", path: "/docs/favicon.png", repeat: "safe", streams: true },
};
