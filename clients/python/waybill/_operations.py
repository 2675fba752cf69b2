"""Written by `bun infra/generate-client.ts` from the OpenAPI document. Do not edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union

from ._calls import Caller


EmailSend = TypedDict(
    "EmailSend",
    {
        "to_address": "str",
        "to_name": NotRequired["Union[str, None]"],
        "subject": NotRequired["Union[str, None]"],
        "template_id": NotRequired["Union[str, None]"],
        "html": NotRequired["Union[str, None]"],
        "text": NotRequired["Union[str, None]"],
        "cc": NotRequired["Union[list[Union[str, EmailSendCc1Item2]], None]"],
        "bcc": NotRequired["Union[list[Union[str, EmailSendBcc1Item2]], None]"],
        "reply_to": NotRequired["Union[Union[Union[str, EmailSendReplyTo112], list[Union[str, EmailSendReplyTo12Item2]]], None]"],
        "headers": NotRequired["Union[Mapping[str, Any], None]"],
        "tracking": NotRequired["Union[EmailSendTracking1, None]"],
        "attachments": NotRequired["Union[list[EmailSendAttachments1Item], None]"],
        "tags": NotRequired["Union[list[EmailSendTags1Item], None]"],
        "topic": NotRequired["Union[str, None]"],
        "data": NotRequired["Union[Mapping[str, Any], None]"],
        "pass": NotRequired["Union[CarriedPass, None]"],
        "scheduled_at": NotRequired["Union[str, None]"],
        "fallback": NotRequired["Union[Fallbacks, None]"],
    },
)

EmailSendCc1Item2 = TypedDict(
    "EmailSendCc1Item2",
    {
        "address": "str",
        "name": NotRequired["Union[str, None]"],
    },
)

EmailSendBcc1Item2 = TypedDict(
    "EmailSendBcc1Item2",
    {
        "address": "str",
        "name": NotRequired["Union[str, None]"],
    },
)

EmailSendReplyTo112 = TypedDict(
    "EmailSendReplyTo112",
    {
        "address": "str",
        "name": NotRequired["Union[str, None]"],
    },
)

EmailSendReplyTo12Item2 = TypedDict(
    "EmailSendReplyTo12Item2",
    {
        "address": "str",
        "name": NotRequired["Union[str, None]"],
    },
)

EmailSendTracking1 = TypedDict(
    "EmailSendTracking1",
    {
        "opens": NotRequired["Union[bool, None]"],
        "clicks": NotRequired["Union[bool, None]"],
    },
)

EmailSendAttachments1Item = TypedDict(
    "EmailSendAttachments1Item",
    {
        "filename": "str",
        "content": "str",
        "content_type": NotRequired["Union[str, None]"],
        "content_id": NotRequired["Union[str, None]"],
    },
)

EmailSendTags1Item = TypedDict(
    "EmailSendTags1Item",
    {
        "name": "str",
        "value": "str",
    },
)

CarriedPass: TypeAlias = "Union[AppleCarriedPass, GoogleCarriedPass, TemplateCarriedPass]"

AppleCarriedPass = TypedDict(
    "AppleCarriedPass",
    {
        "template_id": NotRequired["None"],
        "pass_type": "Literal['apple']",
        "pass_data": "ApplePassData",
    },
)

ApplePassData = TypedDict(
    "ApplePassData",
    {
        "serial_number": "str",
        "organization_name": "str",
        "description": "str",
        "style": NotRequired["Union[Literal['eventTicket', 'boardingPass', 'coupon', 'storeCard', 'generic', 'posterGeneric'], None]"],
        "transit_type": NotRequired["Union[Literal['PKTransitTypeGeneric', 'PKTransitTypeAir', 'PKTransitTypeBoat', 'PKTransitTypeBus', 'PKTransitTypeTrain'], None]"],
        "header_fields": NotRequired["Union[list[PassField], None]"],
        "primary_fields": NotRequired["Union[list[PassField], None]"],
        "secondary_fields": NotRequired["Union[list[PassField], None]"],
        "auxiliary_fields": NotRequired["Union[list[PassField], None]"],
        "back_fields": NotRequired["Union[list[PassField], None]"],
        "additional_info_fields": NotRequired["Union[list[PassField], None]"],
        "footer_fields": NotRequired["Union[list[PassField], None]"],
        "icon_base64": NotRequired["Union[str, None]"],
        "icon_2x_base64": NotRequired["Union[str, None]"],
        "icon_3x_base64": NotRequired["Union[str, None]"],
        "logo_base64": NotRequired["Union[str, None]"],
        "logo_2x_base64": NotRequired["Union[str, None]"],
        "logo_3x_base64": NotRequired["Union[str, None]"],
        "strip_base64": NotRequired["Union[str, None]"],
        "strip_2x_base64": NotRequired["Union[str, None]"],
        "strip_3x_base64": NotRequired["Union[str, None]"],
        "thumbnail_base64": NotRequired["Union[str, None]"],
        "thumbnail_2x_base64": NotRequired["Union[str, None]"],
        "thumbnail_3x_base64": NotRequired["Union[str, None]"],
        "background_base64": NotRequired["Union[str, None]"],
        "background_2x_base64": NotRequired["Union[str, None]"],
        "background_3x_base64": NotRequired["Union[str, None]"],
        "footer_base64": NotRequired["Union[str, None]"],
        "footer_2x_base64": NotRequired["Union[str, None]"],
        "footer_3x_base64": NotRequired["Union[str, None]"],
        "artwork_base64": NotRequired["Union[str, None]"],
        "artwork_2x_base64": NotRequired["Union[str, None]"],
        "artwork_3x_base64": NotRequired["Union[str, None]"],
        "primary_logo_base64": NotRequired["Union[str, None]"],
        "primary_logo_2x_base64": NotRequired["Union[str, None]"],
        "primary_logo_3x_base64": NotRequired["Union[str, None]"],
        "secondary_logo_base64": NotRequired["Union[str, None]"],
        "secondary_logo_2x_base64": NotRequired["Union[str, None]"],
        "secondary_logo_3x_base64": NotRequired["Union[str, None]"],
        "venue_map_base64": NotRequired["Union[str, None]"],
        "venue_map_2x_base64": NotRequired["Union[str, None]"],
        "venue_map_3x_base64": NotRequired["Union[str, None]"],
        "personalization_logo_base64": NotRequired["Union[str, None]"],
        "personalization_logo_2x_base64": NotRequired["Union[str, None]"],
        "personalization_logo_3x_base64": NotRequired["Union[str, None]"],
        "background_color": NotRequired["Union[str, None]"],
        "foreground_color": NotRequired["Union[str, None]"],
        "label_color": NotRequired["Union[str, None]"],
        "strip_color": NotRequired["Union[str, None]"],
        "footer_background_color": NotRequired["Union[str, None]"],
        "barcodes": NotRequired["Union[list[PassBarcode], None]"],
        "relevant_date": NotRequired["Union[str, None]"],
        "relevant_dates": NotRequired["Union[list[PassDates], None]"],
        "expiration_date": NotRequired["Union[str, None]"],
        "locations": NotRequired["Union[list[PassLocation], None]"],
        "beacons": NotRequired["Union[list[PassBeacon], None]"],
        "max_distance": NotRequired["Union[float, None]"],
        "grouping_identifier": NotRequired["Union[str, None]"],
        "voided": NotRequired["Union[bool, None]"],
        "sharing_prohibited": NotRequired["Union[bool, None]"],
        "suppress_strip_shine": NotRequired["Union[bool, None]"],
        "suppress_header_darkening": NotRequired["Union[bool, None]"],
        "use_automatic_colors": NotRequired["Union[bool, None]"],
        "logo_text": NotRequired["Union[str, None]"],
        "event_logo_text": NotRequired["Union[str, None]"],
        "logo_symbol_name": NotRequired["Union[str, None]"],
        "business_chat_identifier": NotRequired["Union[str, None]"],
        "transit_provider_email": NotRequired["Union[str, None]"],
        "transit_provider_phone_number": NotRequired["Union[str, None]"],
        "contact_venue_email": NotRequired["Union[str, None]"],
        "contact_venue_phone_number": NotRequired["Union[str, None]"],
        "accessibility_url": NotRequired["Union[str, None]"],
        "add_on_url": NotRequired["Union[str, None]"],
        "bag_policy_url": NotRequired["Union[str, None]"],
        "contact_venue_website": NotRequired["Union[str, None]"],
        "directions_information_url": NotRequired["Union[str, None]"],
        "merchandise_url": NotRequired["Union[str, None]"],
        "order_food_url": NotRequired["Union[str, None]"],
        "parking_information_url": NotRequired["Union[str, None]"],
        "purchase_parking_url": NotRequired["Union[str, None]"],
        "sell_url": NotRequired["Union[str, None]"],
        "transfer_url": NotRequired["Union[str, None]"],
        "transit_information_url": NotRequired["Union[str, None]"],
        "change_seat_url": NotRequired["Union[str, None]"],
        "entertainment_url": NotRequired["Union[str, None]"],
        "management_url": NotRequired["Union[str, None]"],
        "purchase_additional_baggage_url": NotRequired["Union[str, None]"],
        "purchase_lounge_access_url": NotRequired["Union[str, None]"],
        "purchase_wifi_url": NotRequired["Union[str, None]"],
        "register_service_animal_url": NotRequired["Union[str, None]"],
        "report_lost_bag_url": NotRequired["Union[str, None]"],
        "request_wheelchair_url": NotRequired["Union[str, None]"],
        "transit_provider_website_url": NotRequired["Union[str, None]"],
        "upgrade_url": NotRequired["Union[str, None]"],
        "app_launch_url": NotRequired["Union[str, None]"],
        "associated_store_identifiers": NotRequired["Union[list[int], None]"],
        "auxiliary_store_identifiers": NotRequired["Union[list[int], None]"],
        "user_info": NotRequired["Union[Mapping[str, Any], None]"],
        "semantics": NotRequired["Union[Mapping[str, Any], None]"],
        "nfc": NotRequired["Union[ApplePassDataNfc1, None]"],
        "preferred_style_schemes": NotRequired["Union[list[str], None]"],
        "featured_actions": NotRequired["Union[list[PassFeaturedAction], None]"],
        "upcoming_pass_information": NotRequired["Union[list[PassUpcoming], None]"],
        "personalization": NotRequired["Union[ApplePassDataPersonalization1, None]"],
        "localizations": NotRequired["Union[Mapping[str, Any], None]"],
        "extra": NotRequired["Union[Mapping[str, Any], None]"],
    },
)

PassField = TypedDict(
    "PassField",
    {
        "key": "str",
        "value": "Union[str, float]",
        "label": NotRequired["Union[str, None]"],
        "changeMessage": NotRequired["Union[str, None]"],
        "textAlignment": NotRequired["Union[Literal['PKTextAlignmentLeft', 'PKTextAlignmentCenter', 'PKTextAlignmentRight', 'PKTextAlignmentNatural'], None]"],
        "attributedValue": NotRequired["Union[Union[str, float], None]"],
        "dataDetectorTypes": NotRequired["Union[list[Literal['PKDataDetectorTypePhoneNumber', 'PKDataDetectorTypeLink', 'PKDataDetectorTypeAddress', 'PKDataDetectorTypeCalendarEvent']], None]"],
        "dateStyle": NotRequired["Union[Literal['PKDateStyleNone', 'PKDateStyleShort', 'PKDateStyleMedium', 'PKDateStyleLong', 'PKDateStyleFull'], None]"],
        "timeStyle": NotRequired["Union[Literal['PKDateStyleNone', 'PKDateStyleShort', 'PKDateStyleMedium', 'PKDateStyleLong', 'PKDateStyleFull'], None]"],
        "isRelative": NotRequired["Union[bool, None]"],
        "ignoresTimeZone": NotRequired["Union[bool, None]"],
        "numberStyle": NotRequired["Union[Literal['PKNumberStyleDecimal', 'PKNumberStylePercent', 'PKNumberStyleScientific', 'PKNumberStyleSpellOut'], None]"],
        "currencyCode": NotRequired["Union[str, None]"],
        "row": NotRequired["Union[Union[Literal[0], Literal[1]], None]"],
        "semantics": NotRequired["Union[Mapping[str, Any], None]"],
    },
)

PassBarcode = TypedDict(
    "PassBarcode",
    {
        "message": "str",
        "format": "Literal['PKBarcodeFormatQR', 'PKBarcodeFormatPDF417', 'PKBarcodeFormatAztec', 'PKBarcodeFormatCode128', 'PKBarcodeFormatCode39', 'PKBarcodeFormatCodabar', 'PKBarcodeFormatEAN13', 'PKBarcodeFormatI2of5']",
        "messageEncoding": NotRequired["Union[str, None]"],
        "altText": NotRequired["Union[str, None]"],
    },
)

PassDates = TypedDict(
    "PassDates",
    {
        "date": NotRequired["Union[str, None]"],
        "relevantDate": NotRequired["Union[str, None]"],
        "startDate": NotRequired["Union[str, None]"],
        "endDate": NotRequired["Union[str, None]"],
    },
)

PassLocation = TypedDict(
    "PassLocation",
    {
        "latitude": "float",
        "longitude": "float",
        "altitude": NotRequired["Union[float, None]"],
        "relevantText": NotRequired["Union[str, None]"],
    },
)

PassBeacon = TypedDict(
    "PassBeacon",
    {
        "proximityUUID": "str",
        "major": NotRequired["Union[int, None]"],
        "minor": NotRequired["Union[int, None]"],
        "relevantText": NotRequired["Union[str, None]"],
    },
)

ApplePassDataNfc1 = TypedDict(
    "ApplePassDataNfc1",
    {
        "message": "str",
        "encryptionPublicKey": "str",
        "requiresAuthentication": NotRequired["Union[bool, None]"],
    },
)

PassFeaturedAction = TypedDict(
    "PassFeaturedAction",
    {
        "identifier": "str",
        "type": "str",
        "url": NotRequired["Union[str, None]"],
        "placeIdentifier": NotRequired["Union[str, None]"],
    },
)

PassUpcoming = TypedDict(
    "PassUpcoming",
    {
        "identifier": "str",
        "name": "str",
        "type": "str",
        "isActive": NotRequired["Union[bool, None]"],
        "dateInformation": NotRequired["Union[PassUpcomingDateInformation1, None]"],
        "additionalInfoFields": NotRequired["Union[list[PassField], None]"],
        "backFields": NotRequired["Union[list[PassField], None]"],
        "auxiliaryStoreIdentifiers": NotRequired["Union[list[int], None]"],
        "images": NotRequired["Union[PassUpcomingImages1, None]"],
        "semantics": NotRequired["Union[Mapping[str, Any], None]"],
        "URLs": NotRequired["Union[PassUpcomingURLs1, None]"],
    },
)

PassUpcomingDateInformation1 = TypedDict(
    "PassUpcomingDateInformation1",
    {
        "date": NotRequired["Union[str, None]"],
        "ignoreTimeComponents": NotRequired["Union[bool, None]"],
        "isAllDay": NotRequired["Union[bool, None]"],
        "isUnannounced": NotRequired["Union[bool, None]"],
        "isUndetermined": NotRequired["Union[bool, None]"],
        "timeZone": NotRequired["Union[str, None]"],
    },
)

PassUpcomingImage = TypedDict(
    "PassUpcomingImage",
    {
        "URLs": NotRequired["Union[list[PassUpcomingImageURLs1Item], None]"],
        "reuseExisting": NotRequired["Union[bool, None]"],
    },
)

PassUpcomingImageURLs1Item = TypedDict(
    "PassUpcomingImageURLs1Item",
    {
        "URL": "str",
        "SHA256": "str",
        "scale": NotRequired["Union[int, None]"],
        "size": NotRequired["Union[int, None]"],
    },
)

PassUpcomingImages1 = TypedDict(
    "PassUpcomingImages1",
    {
        "headerImage": NotRequired["Union[PassUpcomingImage, None]"],
        "venueMap": NotRequired["Union[PassUpcomingImage, None]"],
    },
)

PassUpcomingURLs1 = TypedDict(
    "PassUpcomingURLs1",
    {
        "accessibilityURL": NotRequired["Union[str, None]"],
        "addOnURL": NotRequired["Union[str, None]"],
        "bagPolicyURL": NotRequired["Union[str, None]"],
        "contactVenueWebsite": NotRequired["Union[str, None]"],
        "directionsInformationURL": NotRequired["Union[str, None]"],
        "merchandiseURL": NotRequired["Union[str, None]"],
        "orderFoodURL": NotRequired["Union[str, None]"],
        "parkingInformationURL": NotRequired["Union[str, None]"],
        "purchaseParkingURL": NotRequired["Union[str, None]"],
        "sellURL": NotRequired["Union[str, None]"],
        "transferURL": NotRequired["Union[str, None]"],
        "transitInformationURL": NotRequired["Union[str, None]"],
        "contactVenueEmail": NotRequired["Union[str, None]"],
        "contactVenuePhoneNumber": NotRequired["Union[str, None]"],
    },
)

ApplePassDataPersonalization1 = TypedDict(
    "ApplePassDataPersonalization1",
    {
        "requiredPersonalizationFields": "list[str]",
        "description": "str",
        "termsAndConditions": NotRequired["Union[str, None]"],
    },
)

GoogleCarriedPass = TypedDict(
    "GoogleCarriedPass",
    {
        "template_id": NotRequired["None"],
        "pass_type": "Literal['google']",
        "pass_data": "GooglePassData",
    },
)

GooglePassData = TypedDict(
    "GooglePassData",
    {
        "class_id": "str",
        "class_type": NotRequired["Union[Literal['generic', 'eventTicket', 'loyalty', 'offer', 'giftCard', 'transit', 'flight', ''], None]"],
        "object_id": "str",
        "object_data": "GooglePassObject",
    },
)

GooglePassObject: TypeAlias = "Mapping[str, Any]"

TemplateCarriedPass = TypedDict(
    "TemplateCarriedPass",
    {
        "template_id": "str",
        "pass_type": NotRequired["Union[Literal['apple', 'google'], None]"],
        "pass_data": NotRequired["Union[Union[ApplePassPart, GooglePassPart], None]"],
    },
)

ApplePassPart = TypedDict(
    "ApplePassPart",
    {
        "serial_number": NotRequired["Union[str, None]"],
        "organization_name": NotRequired["Union[str, None]"],
        "description": NotRequired["Union[str, None]"],
        "style": NotRequired["Union[Literal['eventTicket', 'boardingPass', 'coupon', 'storeCard', 'generic', 'posterGeneric'], None]"],
        "transit_type": NotRequired["Union[Literal['PKTransitTypeGeneric', 'PKTransitTypeAir', 'PKTransitTypeBoat', 'PKTransitTypeBus', 'PKTransitTypeTrain'], None]"],
        "header_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "primary_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "secondary_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "auxiliary_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "back_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "additional_info_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "footer_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "icon_base64": NotRequired["Union[str, None]"],
        "icon_2x_base64": NotRequired["Union[str, None]"],
        "icon_3x_base64": NotRequired["Union[str, None]"],
        "logo_base64": NotRequired["Union[str, None]"],
        "logo_2x_base64": NotRequired["Union[str, None]"],
        "logo_3x_base64": NotRequired["Union[str, None]"],
        "strip_base64": NotRequired["Union[str, None]"],
        "strip_2x_base64": NotRequired["Union[str, None]"],
        "strip_3x_base64": NotRequired["Union[str, None]"],
        "thumbnail_base64": NotRequired["Union[str, None]"],
        "thumbnail_2x_base64": NotRequired["Union[str, None]"],
        "thumbnail_3x_base64": NotRequired["Union[str, None]"],
        "background_base64": NotRequired["Union[str, None]"],
        "background_2x_base64": NotRequired["Union[str, None]"],
        "background_3x_base64": NotRequired["Union[str, None]"],
        "footer_base64": NotRequired["Union[str, None]"],
        "footer_2x_base64": NotRequired["Union[str, None]"],
        "footer_3x_base64": NotRequired["Union[str, None]"],
        "artwork_base64": NotRequired["Union[str, None]"],
        "artwork_2x_base64": NotRequired["Union[str, None]"],
        "artwork_3x_base64": NotRequired["Union[str, None]"],
        "primary_logo_base64": NotRequired["Union[str, None]"],
        "primary_logo_2x_base64": NotRequired["Union[str, None]"],
        "primary_logo_3x_base64": NotRequired["Union[str, None]"],
        "secondary_logo_base64": NotRequired["Union[str, None]"],
        "secondary_logo_2x_base64": NotRequired["Union[str, None]"],
        "secondary_logo_3x_base64": NotRequired["Union[str, None]"],
        "venue_map_base64": NotRequired["Union[str, None]"],
        "venue_map_2x_base64": NotRequired["Union[str, None]"],
        "venue_map_3x_base64": NotRequired["Union[str, None]"],
        "personalization_logo_base64": NotRequired["Union[str, None]"],
        "personalization_logo_2x_base64": NotRequired["Union[str, None]"],
        "personalization_logo_3x_base64": NotRequired["Union[str, None]"],
        "background_color": NotRequired["Union[str, None]"],
        "foreground_color": NotRequired["Union[str, None]"],
        "label_color": NotRequired["Union[str, None]"],
        "strip_color": NotRequired["Union[str, None]"],
        "footer_background_color": NotRequired["Union[str, None]"],
        "barcodes": NotRequired["Union[list[PassBarcode], None]"],
        "relevant_date": NotRequired["Union[str, None]"],
        "relevant_dates": NotRequired["Union[list[PassDates], None]"],
        "expiration_date": NotRequired["Union[str, None]"],
        "locations": NotRequired["Union[list[PassLocation], None]"],
        "beacons": NotRequired["Union[list[PassBeacon], None]"],
        "max_distance": NotRequired["Union[float, None]"],
        "grouping_identifier": NotRequired["Union[str, None]"],
        "voided": NotRequired["Union[bool, None]"],
        "sharing_prohibited": NotRequired["Union[bool, None]"],
        "suppress_strip_shine": NotRequired["Union[bool, None]"],
        "suppress_header_darkening": NotRequired["Union[bool, None]"],
        "use_automatic_colors": NotRequired["Union[bool, None]"],
        "logo_text": NotRequired["Union[str, None]"],
        "event_logo_text": NotRequired["Union[str, None]"],
        "logo_symbol_name": NotRequired["Union[str, None]"],
        "business_chat_identifier": NotRequired["Union[str, None]"],
        "transit_provider_email": NotRequired["Union[str, None]"],
        "transit_provider_phone_number": NotRequired["Union[str, None]"],
        "contact_venue_email": NotRequired["Union[str, None]"],
        "contact_venue_phone_number": NotRequired["Union[str, None]"],
        "accessibility_url": NotRequired["Union[str, None]"],
        "add_on_url": NotRequired["Union[str, None]"],
        "bag_policy_url": NotRequired["Union[str, None]"],
        "contact_venue_website": NotRequired["Union[str, None]"],
        "directions_information_url": NotRequired["Union[str, None]"],
        "merchandise_url": NotRequired["Union[str, None]"],
        "order_food_url": NotRequired["Union[str, None]"],
        "parking_information_url": NotRequired["Union[str, None]"],
        "purchase_parking_url": NotRequired["Union[str, None]"],
        "sell_url": NotRequired["Union[str, None]"],
        "transfer_url": NotRequired["Union[str, None]"],
        "transit_information_url": NotRequired["Union[str, None]"],
        "change_seat_url": NotRequired["Union[str, None]"],
        "entertainment_url": NotRequired["Union[str, None]"],
        "management_url": NotRequired["Union[str, None]"],
        "purchase_additional_baggage_url": NotRequired["Union[str, None]"],
        "purchase_lounge_access_url": NotRequired["Union[str, None]"],
        "purchase_wifi_url": NotRequired["Union[str, None]"],
        "register_service_animal_url": NotRequired["Union[str, None]"],
        "report_lost_bag_url": NotRequired["Union[str, None]"],
        "request_wheelchair_url": NotRequired["Union[str, None]"],
        "transit_provider_website_url": NotRequired["Union[str, None]"],
        "upgrade_url": NotRequired["Union[str, None]"],
        "app_launch_url": NotRequired["Union[str, None]"],
        "associated_store_identifiers": NotRequired["Union[list[int], None]"],
        "auxiliary_store_identifiers": NotRequired["Union[list[int], None]"],
        "user_info": NotRequired["Union[Mapping[str, Any], None]"],
        "semantics": NotRequired["Union[Mapping[str, Any], None]"],
        "nfc": NotRequired["Union[ApplePassPartNfc1, None]"],
        "preferred_style_schemes": NotRequired["Union[list[str], None]"],
        "featured_actions": NotRequired["Union[list[PassFeaturedAction], None]"],
        "upcoming_pass_information": NotRequired["Union[list[PassUpcoming], None]"],
        "personalization": NotRequired["Union[ApplePassPartPersonalization1, None]"],
        "localizations": NotRequired["Union[Mapping[str, Any], None]"],
        "extra": NotRequired["Union[Mapping[str, Any], None]"],
    },
)

PassFieldPart = TypedDict(
    "PassFieldPart",
    {
        "key": "str",
        "value": NotRequired["Union[Union[str, float], None]"],
        "label": NotRequired["Union[str, None]"],
        "changeMessage": NotRequired["Union[str, None]"],
        "textAlignment": NotRequired["Union[Literal['PKTextAlignmentLeft', 'PKTextAlignmentCenter', 'PKTextAlignmentRight', 'PKTextAlignmentNatural'], None]"],
        "attributedValue": NotRequired["Union[Union[str, float], None]"],
        "dataDetectorTypes": NotRequired["Union[list[Literal['PKDataDetectorTypePhoneNumber', 'PKDataDetectorTypeLink', 'PKDataDetectorTypeAddress', 'PKDataDetectorTypeCalendarEvent']], None]"],
        "dateStyle": NotRequired["Union[Literal['PKDateStyleNone', 'PKDateStyleShort', 'PKDateStyleMedium', 'PKDateStyleLong', 'PKDateStyleFull'], None]"],
        "timeStyle": NotRequired["Union[Literal['PKDateStyleNone', 'PKDateStyleShort', 'PKDateStyleMedium', 'PKDateStyleLong', 'PKDateStyleFull'], None]"],
        "isRelative": NotRequired["Union[bool, None]"],
        "ignoresTimeZone": NotRequired["Union[bool, None]"],
        "numberStyle": NotRequired["Union[Literal['PKNumberStyleDecimal', 'PKNumberStylePercent', 'PKNumberStyleScientific', 'PKNumberStyleSpellOut'], None]"],
        "currencyCode": NotRequired["Union[str, None]"],
        "row": NotRequired["Union[Union[Literal[0], Literal[1]], None]"],
        "semantics": NotRequired["Union[Mapping[str, Any], None]"],
    },
)

ApplePassPartNfc1 = TypedDict(
    "ApplePassPartNfc1",
    {
        "message": "str",
        "encryptionPublicKey": "str",
        "requiresAuthentication": NotRequired["Union[bool, None]"],
    },
)

ApplePassPartPersonalization1 = TypedDict(
    "ApplePassPartPersonalization1",
    {
        "requiredPersonalizationFields": "list[str]",
        "description": "str",
        "termsAndConditions": NotRequired["Union[str, None]"],
    },
)

GooglePassPart = TypedDict(
    "GooglePassPart",
    {
        "class_id": NotRequired["Union[str, None]"],
        "class_type": NotRequired["Union[Literal['generic', 'eventTicket', 'loyalty', 'offer', 'giftCard', 'transit', 'flight', ''], None]"],
        "object_id": NotRequired["Union[str, None]"],
        "object_data": NotRequired["Union[GooglePassObject, None]"],
    },
)

Fallbacks: TypeAlias = "list[FallbacksValueItem]"

FallbacksValueItem = TypedDict(
    "FallbacksValueItem",
    {
        "after": "str",
        "unless": "Union[Literal['sent', 'delivered', 'read', 'opened', 'clicked'], list[Literal['sent', 'delivered', 'read', 'opened', 'clicked']]]",
        "send": "Mapping[str, Any]",
    },
)

PendingJob = TypedDict(
    "PendingJob",
    {
        "job_id": "str",
        "status": "Literal['pending']",
        "fallback": NotRequired["list[PendingJobFallbackItem]"],
    },
)

PendingJobFallbackItem = TypedDict(
    "PendingJobFallbackItem",
    {
        "job_id": "str",
        "scheduled_at": "str",
    },
)

EmailSendBatch = TypedDict(
    "EmailSendBatch",
    {
        "defaults": NotRequired["Union[EmailSendInBatch, None]"],
        "messages": "list[EmailSendInBatch]",
    },
)

EmailSendInBatch = TypedDict(
    "EmailSendInBatch",
    {
        "to_address": NotRequired["str"],
        "to_name": NotRequired["Union[str, None]"],
        "subject": NotRequired["Union[str, None]"],
        "template_id": NotRequired["Union[str, None]"],
        "html": NotRequired["Union[str, None]"],
        "text": NotRequired["Union[str, None]"],
        "cc": NotRequired["Union[list[Union[str, EmailSendInBatchCc1Item2]], None]"],
        "bcc": NotRequired["Union[list[Union[str, EmailSendInBatchBcc1Item2]], None]"],
        "reply_to": NotRequired["Union[Union[Union[str, EmailSendInBatchReplyTo112], list[Union[str, EmailSendInBatchReplyTo12Item2]]], None]"],
        "headers": NotRequired["Union[Mapping[str, Any], None]"],
        "tracking": NotRequired["Union[EmailSendInBatchTracking1, None]"],
        "attachments": NotRequired["Union[list[EmailSendInBatchAttachments1Item], None]"],
        "tags": NotRequired["Union[list[EmailSendInBatchTags1Item], None]"],
        "topic": NotRequired["Union[str, None]"],
        "data": NotRequired["Union[Mapping[str, Any], None]"],
        "scheduled_at": NotRequired["Union[str, None]"],
    },
)

EmailSendInBatchCc1Item2 = TypedDict(
    "EmailSendInBatchCc1Item2",
    {
        "address": "str",
        "name": NotRequired["Union[str, None]"],
    },
)

EmailSendInBatchBcc1Item2 = TypedDict(
    "EmailSendInBatchBcc1Item2",
    {
        "address": "str",
        "name": NotRequired["Union[str, None]"],
    },
)

EmailSendInBatchReplyTo112 = TypedDict(
    "EmailSendInBatchReplyTo112",
    {
        "address": "str",
        "name": NotRequired["Union[str, None]"],
    },
)

EmailSendInBatchReplyTo12Item2 = TypedDict(
    "EmailSendInBatchReplyTo12Item2",
    {
        "address": "str",
        "name": NotRequired["Union[str, None]"],
    },
)

EmailSendInBatchTracking1 = TypedDict(
    "EmailSendInBatchTracking1",
    {
        "opens": NotRequired["Union[bool, None]"],
        "clicks": NotRequired["Union[bool, None]"],
    },
)

EmailSendInBatchAttachments1Item = TypedDict(
    "EmailSendInBatchAttachments1Item",
    {
        "filename": "str",
        "content": "str",
        "content_type": NotRequired["Union[str, None]"],
        "content_id": NotRequired["Union[str, None]"],
    },
)

EmailSendInBatchTags1Item = TypedDict(
    "EmailSendInBatchTags1Item",
    {
        "name": "str",
        "value": "str",
    },
)

BatchAnswer = TypedDict(
    "BatchAnswer",
    {
        "jobs": "list[BatchAnswerJobsItem]",
        "errors": "list[BatchAnswerErrorsItem]",
    },
)

BatchAnswerJobsItem = TypedDict(
    "BatchAnswerJobsItem",
    {
        "index": "int",
        "job_id": "str",
        "status": "Literal['pending']",
    },
)

ErrorCode: TypeAlias = "Literal['bad_request', 'invalid_json', 'invalid_member', 'unknown_member', 'unknown_template', 'invalid_cursor', 'invalid_idempotency_key', 'wrong_content_type', 'unauthorized', 'invalid_api_key', 'invalid_operator_token', 'insufficient_tokens', 'forbidden', 'scope_missing', 'channel_not_enabled', 'sends_on_hold', 'permission_missing', 'read_only_operator', 'not_found', 'no_such_alias', 'no_such_class', 'no_such_credentials', 'no_such_domain', 'no_such_file', 'no_such_job', 'no_such_key', 'no_such_link', 'no_such_operator', 'no_such_pass', 'no_such_suppression', 'no_such_template', 'no_such_tenant', 'no_such_webhook', 'method_not_allowed', 'request_timeout', 'conflict', 'already_exists', 'limit_reached', 'job_state', 'payload_too_large', 'unsupported_encoding', 'unprocessable', 'html_violation', 'domain_not_verified', 'reply_window_closed', 'idempotency_conflict', 'too_many_at_once', 'rate_limited', 'queue_share_exceeded', 'daily_limit_reached', 'internal_error', 'service_unreachable', 'outcome_unknown', 'not_configured', 'unavailable', 'not_ready']"

BatchAnswerErrorsItemViolationsItem = TypedDict(
    "BatchAnswerErrorsItemViolationsItem",
    {
        "rule": "Union[Literal['empty'], Literal['too_large'], Literal['image_only'], Literal['script']]",
        "message": "str",
    },
)

BatchAnswerErrorsItem = TypedDict(
    "BatchAnswerErrorsItem",
    {
        "index": "int",
        "error": "str",
        "code": "ErrorCode",
        "param": NotRequired["str"],
        "violations": NotRequired["list[BatchAnswerErrorsItemViolationsItem]"],
    },
)

DomainList = TypedDict(
    "DomainList",
    {
        "domains": "list[Domain]",
    },
)

Domain = TypedDict(
    "Domain",
    {
        "Domain": "str",
        "RelayEnabled": "bool",
        "RelayStatus": "Literal['pending', 'verified', 'failed']",
        "SMTPEnabled": "bool",
        "SMTPStatus": "Literal['pending', 'verified', 'failed']",
        "DNSRecords": "DomainDNSRecords",
    },
)

DomainDNSRecordsRelayItem = TypedDict(
    "DomainDNSRecordsRelayItem",
    {
        "type": "Literal['MX', 'TXT']",
        "name": "str",
        "value": "str",
        "priority": NotRequired["int"],
    },
)

DomainDNSRecords = TypedDict(
    "DomainDNSRecords",
    {
        "relay": "list[DomainDNSRecordsRelayItem]",
    },
)

ChatSend = TypedDict(
    "ChatSend",
    {
        "phone_number": NotRequired["Union[str, None]"],
        "recipient": NotRequired["Union[str, None]"],
        "template_id": NotRequired["Union[str, None]"],
        "language_code": NotRequired["Union[str, None]"],
        "params": NotRequired["Union[ChatParams, None]"],
        "header": NotRequired["Union[ChatHeader, None]"],
        "buttons": NotRequired["Union[list[ChatButton], None]"],
        "cards": NotRequired["Union[list[ChatCard], None]"],
        "limited_time_offer": NotRequired["Union[ChatOffer, None]"],
        "components": NotRequired["Union[list[Mapping[str, Any]], None]"],
        "text": NotRequired["Union[ChatText, None]"],
        "media": NotRequired["Union[ChatMedia, None]"],
        "location": NotRequired["Union[ChatLocation, None]"],
        "contacts": NotRequired["Union[list[Mapping[str, Any]], None]"],
        "reaction": NotRequired["Union[ChatReaction, None]"],
        "interactive": NotRequired["Union[ChatInteractive, None]"],
        "reply_to": NotRequired["Union[str, None]"],
        "pass": NotRequired["Union[CarriedPass, None]"],
        "scheduled_at": NotRequired["Union[str, None]"],
        "fallback": NotRequired["Union[Fallbacks, None]"],
    },
)

ChatParams: TypeAlias = "Union[list[Union[Union[str, float, bool], ChatParamsValue1Item2, ChatParamsValue1Item3]], Mapping[str, Any]]"

ChatParamsValue1Item2 = TypedDict(
    "ChatParamsValue1Item2",
    {
        "type": "Literal['currency']",
        "fallback_value": "str",
        "code": "str",
        "amount_1000": "int",
    },
)

ChatParamsValue1Item3 = TypedDict(
    "ChatParamsValue1Item3",
    {
        "type": "Literal['date_time']",
        "fallback_value": "str",
    },
)

ChatHeader: TypeAlias = "Union[ChatHeaderValue1, ChatHeaderValue2, ChatHeaderValue3, ChatHeaderValue4, ChatHeaderValue5, ChatHeaderValue6]"

ChatHeaderValue1 = TypedDict(
    "ChatHeaderValue1",
    {
        "type": "Literal['text']",
        "text": "Union[str, float, bool]",
        "parameter_name": NotRequired["Union[str, None]"],
    },
)

ChatHeaderValue2 = TypedDict(
    "ChatHeaderValue2",
    {
        "type": "Literal['image']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatHeaderValue3 = TypedDict(
    "ChatHeaderValue3",
    {
        "type": "Literal['video']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatHeaderValue4 = TypedDict(
    "ChatHeaderValue4",
    {
        "type": "Literal['document']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
        "filename": NotRequired["Union[str, None]"],
    },
)

ChatHeaderValue5 = TypedDict(
    "ChatHeaderValue5",
    {
        "type": "Literal['location']",
        "latitude": "float",
        "longitude": "float",
        "name": NotRequired["Union[str, None]"],
        "address": NotRequired["Union[str, None]"],
    },
)

ChatHeaderValue6 = TypedDict(
    "ChatHeaderValue6",
    {
        "type": "Literal['product']",
        "product_retailer_id": "str",
        "catalog_id": NotRequired["Union[str, None]"],
    },
)

ChatButton: TypeAlias = "Union[ChatButtonValue1, ChatButtonValue2, ChatButtonValue3, ChatButtonValue4, ChatButtonValue5]"

ChatButtonValue1 = TypedDict(
    "ChatButtonValue1",
    {
        "index": "int",
        "sub_type": "Literal['quick_reply', 'url', 'copy_code']",
        "value": "Union[str, float, bool]",
    },
)

ChatButtonValue2 = TypedDict(
    "ChatButtonValue2",
    {
        "index": "int",
        "sub_type": "Literal['flow']",
        "value": NotRequired["Union[Union[str, float, bool], None]"],
        "data": NotRequired["Union[Mapping[str, Any], None]"],
    },
)

ChatButtonValue3 = TypedDict(
    "ChatButtonValue3",
    {
        "index": "int",
        "sub_type": "Literal['catalog']",
        "value": NotRequired["Union[Union[str, float, bool], None]"],
    },
)

ChatProductSection = TypedDict(
    "ChatProductSection",
    {
        "title": "str",
        "product_retailer_ids": "list[str]",
    },
)

ChatButtonValue4 = TypedDict(
    "ChatButtonValue4",
    {
        "index": "int",
        "sub_type": "Literal['mpm']",
        "value": "Union[str, float, bool]",
        "sections": "list[ChatProductSection]",
    },
)

ChatButtonValue5 = TypedDict(
    "ChatButtonValue5",
    {
        "index": "int",
        "sub_type": "str",
        "parameters": "list[Mapping[str, Any]]",
    },
)

ChatCard = TypedDict(
    "ChatCard",
    {
        "header": "Union[ChatCardHeader1, ChatCardHeader2, ChatCardHeader3]",
        "params": NotRequired["Union[ChatParams, None]"],
        "buttons": NotRequired["Union[list[ChatButton], None]"],
    },
)

ChatCardHeader1 = TypedDict(
    "ChatCardHeader1",
    {
        "type": "Literal['image']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatCardHeader2 = TypedDict(
    "ChatCardHeader2",
    {
        "type": "Literal['video']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatCardHeader3 = TypedDict(
    "ChatCardHeader3",
    {
        "type": "Literal['product']",
        "product_retailer_id": "str",
        "catalog_id": NotRequired["Union[str, None]"],
    },
)

ChatOffer = TypedDict(
    "ChatOffer",
    {
        "expires_at": "str",
    },
)

ChatText: TypeAlias = "Union[str, ChatTextValue2]"

ChatTextValue2 = TypedDict(
    "ChatTextValue2",
    {
        "body": "str",
        "preview_url": NotRequired["Union[bool, None]"],
    },
)

ChatMedia: TypeAlias = "Union[ChatMediaValue1, ChatMediaValue2, ChatMediaValue3, ChatMediaValue4, ChatMediaValue5]"

ChatMediaValue1 = TypedDict(
    "ChatMediaValue1",
    {
        "type": "Literal['image']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
        "caption": NotRequired["Union[str, None]"],
    },
)

ChatMediaValue2 = TypedDict(
    "ChatMediaValue2",
    {
        "type": "Literal['video']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
        "caption": NotRequired["Union[str, None]"],
    },
)

ChatMediaValue3 = TypedDict(
    "ChatMediaValue3",
    {
        "type": "Literal['audio']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
        "voice": NotRequired["Union[bool, None]"],
    },
)

ChatMediaValue4 = TypedDict(
    "ChatMediaValue4",
    {
        "type": "Literal['document']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
        "caption": NotRequired["Union[str, None]"],
        "filename": NotRequired["Union[str, None]"],
    },
)

ChatMediaValue5 = TypedDict(
    "ChatMediaValue5",
    {
        "type": "Literal['sticker']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatLocation = TypedDict(
    "ChatLocation",
    {
        "latitude": "float",
        "longitude": "float",
        "name": NotRequired["Union[str, None]"],
        "address": NotRequired["Union[str, None]"],
    },
)

ChatReaction = TypedDict(
    "ChatReaction",
    {
        "message_id": "str",
        "emoji": "str",
    },
)

ChatInteractive: TypeAlias = "Union[ChatInteractiveValue1, ChatInteractiveValue2, ChatInteractiveValue3, ChatInteractiveValue4, ChatInteractiveValue5, ChatInteractiveValue6, ChatInteractiveValue7, ChatInteractiveValue8, ChatInteractiveValue9]"

ChatInteractiveValue1Header11 = TypedDict(
    "ChatInteractiveValue1Header11",
    {
        "type": "Literal['text']",
        "text": "Union[str, float, bool]",
    },
)

ChatInteractiveValue1Header12 = TypedDict(
    "ChatInteractiveValue1Header12",
    {
        "type": "Literal['image']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue1Header13 = TypedDict(
    "ChatInteractiveValue1Header13",
    {
        "type": "Literal['video']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue1Header14 = TypedDict(
    "ChatInteractiveValue1Header14",
    {
        "type": "Literal['document']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
        "filename": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue1ButtonsItem = TypedDict(
    "ChatInteractiveValue1ButtonsItem",
    {
        "id": "str",
        "title": "str",
    },
)

ChatInteractiveValue1 = TypedDict(
    "ChatInteractiveValue1",
    {
        "type": "Literal['button']",
        "header": NotRequired["Union[Union[ChatInteractiveValue1Header11, ChatInteractiveValue1Header12, ChatInteractiveValue1Header13, ChatInteractiveValue1Header14], None]"],
        "body": "str",
        "footer": NotRequired["Union[str, None]"],
        "buttons": "list[ChatInteractiveValue1ButtonsItem]",
    },
)

ChatInteractiveValue2Header1 = TypedDict(
    "ChatInteractiveValue2Header1",
    {
        "type": "Literal['text']",
        "text": "Union[str, float, bool]",
    },
)

ChatListSection = TypedDict(
    "ChatListSection",
    {
        "title": NotRequired["Union[str, None]"],
        "rows": "list[ChatListSectionRowsItem]",
    },
)

ChatListSectionRowsItem = TypedDict(
    "ChatListSectionRowsItem",
    {
        "id": "str",
        "title": "str",
        "description": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue2 = TypedDict(
    "ChatInteractiveValue2",
    {
        "type": "Literal['list']",
        "header": NotRequired["Union[ChatInteractiveValue2Header1, None]"],
        "body": "str",
        "footer": NotRequired["Union[str, None]"],
        "button": "str",
        "sections": "list[ChatListSection]",
    },
)

ChatInteractiveValue3Header11 = TypedDict(
    "ChatInteractiveValue3Header11",
    {
        "type": "Literal['text']",
        "text": "Union[str, float, bool]",
    },
)

ChatInteractiveValue3Header12 = TypedDict(
    "ChatInteractiveValue3Header12",
    {
        "type": "Literal['image']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue3Header13 = TypedDict(
    "ChatInteractiveValue3Header13",
    {
        "type": "Literal['video']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue3Header14 = TypedDict(
    "ChatInteractiveValue3Header14",
    {
        "type": "Literal['document']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
        "filename": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue3 = TypedDict(
    "ChatInteractiveValue3",
    {
        "type": "Literal['cta_url']",
        "header": NotRequired["Union[Union[ChatInteractiveValue3Header11, ChatInteractiveValue3Header12, ChatInteractiveValue3Header13, ChatInteractiveValue3Header14], None]"],
        "body": "str",
        "footer": NotRequired["Union[str, None]"],
        "display_text": "str",
        "url": "str",
    },
)

ChatInteractiveValue4Header11 = TypedDict(
    "ChatInteractiveValue4Header11",
    {
        "type": "Literal['text']",
        "text": "Union[str, float, bool]",
    },
)

ChatInteractiveValue4Header12 = TypedDict(
    "ChatInteractiveValue4Header12",
    {
        "type": "Literal['image']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue4Header13 = TypedDict(
    "ChatInteractiveValue4Header13",
    {
        "type": "Literal['video']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue4Header14 = TypedDict(
    "ChatInteractiveValue4Header14",
    {
        "type": "Literal['document']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
        "filename": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue4 = TypedDict(
    "ChatInteractiveValue4",
    {
        "type": "Literal['flow']",
        "header": NotRequired["Union[Union[ChatInteractiveValue4Header11, ChatInteractiveValue4Header12, ChatInteractiveValue4Header13, ChatInteractiveValue4Header14], None]"],
        "body": "str",
        "footer": NotRequired["Union[str, None]"],
        "flow_id": "str",
        "flow_cta": "str",
        "flow_token": NotRequired["Union[str, None]"],
        "flow_action": NotRequired["Union[Literal['navigate', 'data_exchange'], None]"],
        "screen": NotRequired["Union[str, None]"],
        "data": NotRequired["Union[Mapping[str, Any], None]"],
        "mode": NotRequired["Union[Literal['published', 'draft'], None]"],
    },
)

ChatInteractiveValue5 = TypedDict(
    "ChatInteractiveValue5",
    {
        "type": "Literal['location_request_message']",
        "body": "str",
        "footer": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue6 = TypedDict(
    "ChatInteractiveValue6",
    {
        "type": "Literal['product']",
        "body": NotRequired["Union[str, None]"],
        "footer": NotRequired["Union[str, None]"],
        "catalog_id": "str",
        "product_retailer_id": "str",
    },
)

ChatInteractiveValue7Header = TypedDict(
    "ChatInteractiveValue7Header",
    {
        "type": "Literal['text']",
        "text": "Union[str, float, bool]",
    },
)

ChatInteractiveValue7 = TypedDict(
    "ChatInteractiveValue7",
    {
        "type": "Literal['product_list']",
        "header": "ChatInteractiveValue7Header",
        "body": "str",
        "footer": NotRequired["Union[str, None]"],
        "catalog_id": "str",
        "sections": "list[ChatProductSection]",
    },
)

ChatInteractiveValue8 = TypedDict(
    "ChatInteractiveValue8",
    {
        "type": "Literal['catalog_message']",
        "body": "str",
        "footer": NotRequired["Union[str, None]"],
        "product_retailer_id": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue9Header11 = TypedDict(
    "ChatInteractiveValue9Header11",
    {
        "type": "Literal['text']",
        "text": "Union[str, float, bool]",
    },
)

ChatInteractiveValue9Header12 = TypedDict(
    "ChatInteractiveValue9Header12",
    {
        "type": "Literal['image']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue9Header13 = TypedDict(
    "ChatInteractiveValue9Header13",
    {
        "type": "Literal['video']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue9Header14 = TypedDict(
    "ChatInteractiveValue9Header14",
    {
        "type": "Literal['document']",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
        "filename": NotRequired["Union[str, None]"],
    },
)

ChatInteractiveValue9 = TypedDict(
    "ChatInteractiveValue9",
    {
        "type": "str",
        "header": NotRequired["Union[Union[ChatInteractiveValue9Header11, ChatInteractiveValue9Header12, ChatInteractiveValue9Header13, ChatInteractiveValue9Header14], None]"],
        "body": NotRequired["Union[str, None]"],
        "footer": NotRequired["Union[str, None]"],
        "action": "Mapping[str, Any]",
    },
)

ChatSendBatch = TypedDict(
    "ChatSendBatch",
    {
        "defaults": NotRequired["Union[ChatSendInBatch, None]"],
        "messages": "list[ChatSendInBatch]",
    },
)

ChatSendInBatch = TypedDict(
    "ChatSendInBatch",
    {
        "phone_number": NotRequired["Union[str, None]"],
        "recipient": NotRequired["Union[str, None]"],
        "template_id": NotRequired["Union[str, None]"],
        "language_code": NotRequired["Union[str, None]"],
        "params": NotRequired["Union[ChatParams, None]"],
        "header": NotRequired["Union[ChatHeader, None]"],
        "buttons": NotRequired["Union[list[ChatButton], None]"],
        "cards": NotRequired["Union[list[ChatCard], None]"],
        "limited_time_offer": NotRequired["Union[ChatOffer, None]"],
        "components": NotRequired["Union[list[Mapping[str, Any]], None]"],
        "text": NotRequired["Union[ChatText, None]"],
        "media": NotRequired["Union[ChatMedia, None]"],
        "location": NotRequired["Union[ChatLocation, None]"],
        "contacts": NotRequired["Union[list[Mapping[str, Any]], None]"],
        "reaction": NotRequired["Union[ChatReaction, None]"],
        "interactive": NotRequired["Union[ChatInteractive, None]"],
        "reply_to": NotRequired["Union[str, None]"],
        "scheduled_at": NotRequired["Union[str, None]"],
    },
)

AliasList = TypedDict(
    "AliasList",
    {
        "aliases": "list[Alias]",
    },
)

Alias = TypedDict(
    "Alias",
    {
        "alias": "str",
        "meta_name": "str",
        "language_code": "Union[str, None]",
        "params": "list[str]",
        "header": "Union[AliasHeader1, None]",
    },
)

AliasHeader1 = TypedDict(
    "AliasHeader1",
    {
        "type": "Literal['image', 'video', 'document']",
        "link": NotRequired["str"],
        "id": NotRequired["str"],
        "filename": NotRequired["str"],
    },
)

PutOwnAliasBodyHeader1 = TypedDict(
    "PutOwnAliasBodyHeader1",
    {
        "type": "Union[Literal['image'], Literal['video'], Literal['document']]",
        "link": NotRequired["Union[str, None]"],
        "id": NotRequired["Union[str, None]"],
        "filename": NotRequired["Union[str, None]"],
    },
)

PutOwnAliasBody = TypedDict(
    "PutOwnAliasBody",
    {
        "meta_name": "str",
        "language_code": NotRequired["Union[str, None]"],
        "params": NotRequired["Union[list[str], None]"],
        "header": NotRequired["Union[PutOwnAliasBodyHeader1, None]"],
    },
)

ChatTemplates = TypedDict(
    "ChatTemplates",
    {
        "account_id": "Union[str, None]",
        "read_at": "Union[str, None]",
        "complete": "bool",
        "templates": "list[ChatTemplate]",
    },
)

ChatTemplate = TypedDict(
    "ChatTemplate",
    {
        "name": "str",
        "language": "str",
        "status": "str",
        "category": "Union[str, None]",
        "parameter_format": "Union[str, None]",
        "header_format": "Union[str, None]",
        "header_params": "list[str]",
        "body_params": "Union[list[str], None]",
        "filled_buttons": "list[int]",
    },
)

PassRequest: TypeAlias = "Union[ApplePassRequest, GooglePassRequest, TemplatePassRequest]"

ApplePassRequest = TypedDict(
    "ApplePassRequest",
    {
        "template_id": NotRequired["None"],
        "pass_type": "Literal['apple']",
        "pass_data": "ApplePassData",
        "scheduled_at": NotRequired["Union[str, None]"],
    },
)

GooglePassRequest = TypedDict(
    "GooglePassRequest",
    {
        "template_id": NotRequired["None"],
        "pass_type": "Literal['google']",
        "pass_data": "GooglePassData",
        "scheduled_at": NotRequired["Union[str, None]"],
    },
)

TemplatePassRequest = TypedDict(
    "TemplatePassRequest",
    {
        "template_id": "str",
        "pass_type": NotRequired["Union[Literal['apple', 'google'], None]"],
        "pass_data": NotRequired["Union[Union[ApplePassPart, GooglePassPart], None]"],
        "scheduled_at": NotRequired["Union[str, None]"],
    },
)

PassUpdate = TypedDict(
    "PassUpdate",
    {
        "pass_data": "Union[ApplePassChange, GooglePassChange]",
        "notify_message": NotRequired["Union[str, None]"],
        "notification_kind": NotRequired["Union[Literal['match.upcoming', 'match.result.recorded', 'player.advanced', 'tournament.finished'], None]"],
    },
)

ApplePassChange = TypedDict(
    "ApplePassChange",
    {
        "serial_number": NotRequired["str"],
        "organization_name": NotRequired["str"],
        "description": NotRequired["str"],
        "style": NotRequired["Union[Literal['eventTicket', 'boardingPass', 'coupon', 'storeCard', 'generic', 'posterGeneric'], None]"],
        "transit_type": NotRequired["Union[Literal['PKTransitTypeGeneric', 'PKTransitTypeAir', 'PKTransitTypeBoat', 'PKTransitTypeBus', 'PKTransitTypeTrain'], None]"],
        "header_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "primary_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "secondary_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "auxiliary_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "back_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "additional_info_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "footer_fields": NotRequired["Union[list[PassFieldPart], None]"],
        "icon_base64": NotRequired["Union[str, None]"],
        "icon_2x_base64": NotRequired["Union[str, None]"],
        "icon_3x_base64": NotRequired["Union[str, None]"],
        "logo_base64": NotRequired["Union[str, None]"],
        "logo_2x_base64": NotRequired["Union[str, None]"],
        "logo_3x_base64": NotRequired["Union[str, None]"],
        "strip_base64": NotRequired["Union[str, None]"],
        "strip_2x_base64": NotRequired["Union[str, None]"],
        "strip_3x_base64": NotRequired["Union[str, None]"],
        "thumbnail_base64": NotRequired["Union[str, None]"],
        "thumbnail_2x_base64": NotRequired["Union[str, None]"],
        "thumbnail_3x_base64": NotRequired["Union[str, None]"],
        "background_base64": NotRequired["Union[str, None]"],
        "background_2x_base64": NotRequired["Union[str, None]"],
        "background_3x_base64": NotRequired["Union[str, None]"],
        "footer_base64": NotRequired["Union[str, None]"],
        "footer_2x_base64": NotRequired["Union[str, None]"],
        "footer_3x_base64": NotRequired["Union[str, None]"],
        "artwork_base64": NotRequired["Union[str, None]"],
        "artwork_2x_base64": NotRequired["Union[str, None]"],
        "artwork_3x_base64": NotRequired["Union[str, None]"],
        "primary_logo_base64": NotRequired["Union[str, None]"],
        "primary_logo_2x_base64": NotRequired["Union[str, None]"],
        "primary_logo_3x_base64": NotRequired["Union[str, None]"],
        "secondary_logo_base64": NotRequired["Union[str, None]"],
        "secondary_logo_2x_base64": NotRequired["Union[str, None]"],
        "secondary_logo_3x_base64": NotRequired["Union[str, None]"],
        "venue_map_base64": NotRequired["Union[str, None]"],
        "venue_map_2x_base64": NotRequired["Union[str, None]"],
        "venue_map_3x_base64": NotRequired["Union[str, None]"],
        "personalization_logo_base64": NotRequired["Union[str, None]"],
        "personalization_logo_2x_base64": NotRequired["Union[str, None]"],
        "personalization_logo_3x_base64": NotRequired["Union[str, None]"],
        "background_color": NotRequired["Union[str, None]"],
        "foreground_color": NotRequired["Union[str, None]"],
        "label_color": NotRequired["Union[str, None]"],
        "strip_color": NotRequired["Union[str, None]"],
        "footer_background_color": NotRequired["Union[str, None]"],
        "barcodes": NotRequired["Union[list[PassBarcode], None]"],
        "relevant_date": NotRequired["Union[str, None]"],
        "relevant_dates": NotRequired["Union[list[PassDates], None]"],
        "expiration_date": NotRequired["Union[str, None]"],
        "locations": NotRequired["Union[list[PassLocation], None]"],
        "beacons": NotRequired["Union[list[PassBeacon], None]"],
        "max_distance": NotRequired["Union[float, None]"],
        "grouping_identifier": NotRequired["Union[str, None]"],
        "voided": NotRequired["Union[bool, None]"],
        "sharing_prohibited": NotRequired["Union[bool, None]"],
        "suppress_strip_shine": NotRequired["Union[bool, None]"],
        "suppress_header_darkening": NotRequired["Union[bool, None]"],
        "use_automatic_colors": NotRequired["Union[bool, None]"],
        "logo_text": NotRequired["Union[str, None]"],
        "event_logo_text": NotRequired["Union[str, None]"],
        "logo_symbol_name": NotRequired["Union[str, None]"],
        "business_chat_identifier": NotRequired["Union[str, None]"],
        "transit_provider_email": NotRequired["Union[str, None]"],
        "transit_provider_phone_number": NotRequired["Union[str, None]"],
        "contact_venue_email": NotRequired["Union[str, None]"],
        "contact_venue_phone_number": NotRequired["Union[str, None]"],
        "accessibility_url": NotRequired["Union[str, None]"],
        "add_on_url": NotRequired["Union[str, None]"],
        "bag_policy_url": NotRequired["Union[str, None]"],
        "contact_venue_website": NotRequired["Union[str, None]"],
        "directions_information_url": NotRequired["Union[str, None]"],
        "merchandise_url": NotRequired["Union[str, None]"],
        "order_food_url": NotRequired["Union[str, None]"],
        "parking_information_url": NotRequired["Union[str, None]"],
        "purchase_parking_url": NotRequired["Union[str, None]"],
        "sell_url": NotRequired["Union[str, None]"],
        "transfer_url": NotRequired["Union[str, None]"],
        "transit_information_url": NotRequired["Union[str, None]"],
        "change_seat_url": NotRequired["Union[str, None]"],
        "entertainment_url": NotRequired["Union[str, None]"],
        "management_url": NotRequired["Union[str, None]"],
        "purchase_additional_baggage_url": NotRequired["Union[str, None]"],
        "purchase_lounge_access_url": NotRequired["Union[str, None]"],
        "purchase_wifi_url": NotRequired["Union[str, None]"],
        "register_service_animal_url": NotRequired["Union[str, None]"],
        "report_lost_bag_url": NotRequired["Union[str, None]"],
        "request_wheelchair_url": NotRequired["Union[str, None]"],
        "transit_provider_website_url": NotRequired["Union[str, None]"],
        "upgrade_url": NotRequired["Union[str, None]"],
        "app_launch_url": NotRequired["Union[str, None]"],
        "associated_store_identifiers": NotRequired["Union[list[int], None]"],
        "auxiliary_store_identifiers": NotRequired["Union[list[int], None]"],
        "user_info": NotRequired["Union[Mapping[str, Any], None]"],
        "semantics": NotRequired["Union[Mapping[str, Any], None]"],
        "nfc": NotRequired["Union[ApplePassChangeNfc1, None]"],
        "preferred_style_schemes": NotRequired["Union[list[str], None]"],
        "featured_actions": NotRequired["Union[list[PassFeaturedAction], None]"],
        "upcoming_pass_information": NotRequired["Union[list[PassUpcoming], None]"],
        "personalization": NotRequired["Union[ApplePassChangePersonalization1, None]"],
        "localizations": NotRequired["Union[Mapping[str, Any], None]"],
        "extra": NotRequired["Union[Mapping[str, Any], None]"],
    },
)

ApplePassChangeNfc1 = TypedDict(
    "ApplePassChangeNfc1",
    {
        "message": "str",
        "encryptionPublicKey": "str",
        "requiresAuthentication": NotRequired["Union[bool, None]"],
    },
)

ApplePassChangePersonalization1 = TypedDict(
    "ApplePassChangePersonalization1",
    {
        "requiredPersonalizationFields": "list[str]",
        "description": "str",
        "termsAndConditions": NotRequired["Union[str, None]"],
    },
)

GooglePassChange: TypeAlias = "Mapping[str, Any]"

UpdatingPass = TypedDict(
    "UpdatingPass",
    {
        "pass_id": "str",
        "job_id": "str",
        "status": "Literal['updating']",
        "unchanged": NotRequired["bool"],
    },
)

PassStatus: TypeAlias = "Union[ApplePassStatus, GooglePassStatus]"

ApplePassStatus = TypedDict(
    "ApplePassStatus",
    {
        "pass_id": "str",
        "pass_type": "Literal['apple']",
        "version": "int",
        "status": "Literal['active', 'expired', 'voided']",
        "installed_devices": "int",
        "is_installed": "bool",
    },
)

GooglePassStatus = TypedDict(
    "GooglePassStatus",
    {
        "pass_id": "str",
        "pass_type": "Literal['google']",
        "version": "int",
        "status": "Literal['active', 'completed', 'expired', 'inactive', 'not_found']",
        "google_status": "Literal['ACTIVE', 'COMPLETED', 'EXPIRED', 'INACTIVE', 'not_found']",
        "has_users": "bool",
        "is_installed": "bool",
    },
)

LinkPassesBody = TypedDict(
    "LinkPassesBody",
    {
        "pass_ids": "list[str]",
    },
)

PassLink = TypedDict(
    "PassLink",
    {
        "download_url": "str",
        "download_token": "str",
    },
)

NewGoogleClass: TypeAlias = "Union[NewEventTicketClass, NewGenericClass, NewLoyaltyClass, NewOfferClass, NewGiftCardClass, NewTransitClass, NewFlightClass]"

NewEventTicketClass = TypedDict(
    "NewEventTicketClass",
    {
        "class_type": "Literal['eventTicket']",
        "class_data": "Mapping[str, Any]",
    },
)

NewGenericClass = TypedDict(
    "NewGenericClass",
    {
        "class_type": "Literal['generic']",
        "class_data": "Mapping[str, Any]",
    },
)

NewLoyaltyClass = TypedDict(
    "NewLoyaltyClass",
    {
        "class_type": "Literal['loyalty']",
        "class_data": "Mapping[str, Any]",
    },
)

NewOfferClass = TypedDict(
    "NewOfferClass",
    {
        "class_type": "Literal['offer']",
        "class_data": "Mapping[str, Any]",
    },
)

NewGiftCardClass = TypedDict(
    "NewGiftCardClass",
    {
        "class_type": "Literal['giftCard']",
        "class_data": "Mapping[str, Any]",
    },
)

NewTransitClass = TypedDict(
    "NewTransitClass",
    {
        "class_type": "Literal['transit']",
        "class_data": "Mapping[str, Any]",
    },
)

NewFlightClass = TypedDict(
    "NewFlightClass",
    {
        "class_type": "Literal['flight']",
        "class_data": "Mapping[str, Any]",
    },
)

GoogleClassChange = TypedDict(
    "GoogleClassChange",
    {
        "status": "Literal['created', 'updated']",
        "class_id": "str",
    },
)

GoogleClassUpdate: TypeAlias = "Union[EventTicketClassUpdate, GenericClassUpdate, LoyaltyClassUpdate, OfferClassUpdate, GiftCardClassUpdate, TransitClassUpdate, FlightClassUpdate]"

EventTicketClassUpdate = TypedDict(
    "EventTicketClassUpdate",
    {
        "class_type": "Literal['eventTicket']",
        "class_data": "Mapping[str, Any]",
    },
)

GenericClassUpdate = TypedDict(
    "GenericClassUpdate",
    {
        "class_type": "Literal['generic']",
        "class_data": "Mapping[str, Any]",
    },
)

LoyaltyClassUpdate = TypedDict(
    "LoyaltyClassUpdate",
    {
        "class_type": "Literal['loyalty']",
        "class_data": "Mapping[str, Any]",
    },
)

OfferClassUpdate = TypedDict(
    "OfferClassUpdate",
    {
        "class_type": "Literal['offer']",
        "class_data": "Mapping[str, Any]",
    },
)

GiftCardClassUpdate = TypedDict(
    "GiftCardClassUpdate",
    {
        "class_type": "Literal['giftCard']",
        "class_data": "Mapping[str, Any]",
    },
)

TransitClassUpdate = TypedDict(
    "TransitClassUpdate",
    {
        "class_type": "Literal['transit']",
        "class_data": "Mapping[str, Any]",
    },
)

FlightClassUpdate = TypedDict(
    "FlightClassUpdate",
    {
        "class_type": "Literal['flight']",
        "class_data": "Mapping[str, Any]",
    },
)

GoogleClass: TypeAlias = "Mapping[str, Any]"

Reschedule = TypedDict(
    "Reschedule",
    {
        "scheduled_at": "str",
    },
)

ScheduledJob = TypedDict(
    "ScheduledJob",
    {
        "job_id": "str",
        "status": "Literal['pending']",
        "scheduled_at": "str",
    },
)

Job: TypeAlias = "Union[JobValue1, JobValue2, JobValue3, JobValue4]"

JobValue1 = TypedDict(
    "JobValue1",
    {
        "job_id": "str",
        "status": "Literal['pending', 'running']",
        "scheduled_at": NotRequired["str"],
        "fallback_of": NotRequired["str"],
    },
)

PassResult = TypedDict(
    "PassResult",
    {
        "pass_id": "str",
        "pkpass_base64": NotRequired["str"],
        "download_url": NotRequired["str"],
        "save_link": NotRequired["str"],
    },
)

EmptyResult: TypeAlias = "Mapping[str, Any]"

JobValue2 = TypedDict(
    "JobValue2",
    {
        "job_id": "str",
        "status": "Literal['success']",
        "result": "Union[PassResult, EmptyResult]",
    },
)

FailedJobResult = TypedDict(
    "FailedJobResult",
    {
        "error": "str",
        "spam_score": NotRequired["float"],
        "spam_rules": NotRequired["list[FailedJobResultSpamRulesItem]"],
    },
)

FailedJobResultSpamRulesItem = TypedDict(
    "FailedJobResultSpamRulesItem",
    {
        "rule": "str",
        "score": "float",
        "description": "str",
    },
)

JobValue3 = TypedDict(
    "JobValue3",
    {
        "job_id": "str",
        "status": "Literal['failed']",
        "result": "FailedJobResult",
    },
)

SuppressedResult = TypedDict(
    "SuppressedResult",
    {
        "reason": "Literal['unsubscribed', 'bounced', 'complained', 'manual', 'erased', 'canceled', 'not_needed']",
        "topic": NotRequired["str"],
    },
)

JobValue4 = TypedDict(
    "JobValue4",
    {
        "job_id": "str",
        "status": "Literal['suppressed']",
        "result": "SuppressedResult",
    },
)

CanceledJob = TypedDict(
    "CanceledJob",
    {
        "job_id": "str",
        "status": "Literal['suppressed']",
    },
)

JobEvents = TypedDict(
    "JobEvents",
    {
        "job_id": "str",
        "events": "list[JobEvent]",
    },
)

JobEvent: TypeAlias = "Union[JobEventValue1, JobEventValue2, JobEventValue3, JobEventValue4, JobEventValue5, JobEventValue6, JobEventValue7, JobEventValue8, JobEventValue9]"

JobEventValue1 = TypedDict(
    "JobEventValue1",
    {
        "event_id": "int",
        "event_type": "Literal['sent']",
        "result": "EmptyResult",
        "created_at": "str",
    },
)

RecipientResult = TypedDict(
    "RecipientResult",
    {
        "recipient": NotRequired["str"],
    },
)

JobEventValue2 = TypedDict(
    "JobEventValue2",
    {
        "event_id": "int",
        "event_type": "Literal['delivered']",
        "result": "RecipientResult",
        "created_at": "str",
    },
)

JobEventValue3 = TypedDict(
    "JobEventValue3",
    {
        "event_id": "int",
        "event_type": "Literal['read']",
        "result": "EmptyResult",
        "created_at": "str",
    },
)

OpenedResult = TypedDict(
    "OpenedResult",
    {
        "machine": NotRequired["Literal[True]"],
        "by": NotRequired["str"],
    },
)

JobEventValue4 = TypedDict(
    "JobEventValue4",
    {
        "event_id": "int",
        "event_type": "Literal['opened']",
        "result": "OpenedResult",
        "created_at": "str",
    },
)

ClickedResult = TypedDict(
    "ClickedResult",
    {
        "url": "str",
        "machine": NotRequired["Literal[True]"],
        "by": NotRequired["str"],
    },
)

JobEventValue5 = TypedDict(
    "JobEventValue5",
    {
        "event_id": "int",
        "event_type": "Literal['clicked']",
        "result": "ClickedResult",
        "created_at": "str",
    },
)

BouncedResult = TypedDict(
    "BouncedResult",
    {
        "recipient": NotRequired["str"],
        "code": "Union[int, None]",
        "enhanced_code": "Union[str, None]",
        "diagnostic": "str",
    },
)

JobEventValue6 = TypedDict(
    "JobEventValue6",
    {
        "event_id": "int",
        "event_type": "Literal['bounced']",
        "result": "BouncedResult",
        "created_at": "str",
    },
)

JobEventValue7 = TypedDict(
    "JobEventValue7",
    {
        "event_id": "int",
        "event_type": "Literal['complained']",
        "result": "EmptyResult",
        "created_at": "str",
    },
)

FailedResult = TypedDict(
    "FailedResult",
    {
        "recipient": NotRequired["str"],
        "error": "str",
    },
)

JobEventValue8 = TypedDict(
    "JobEventValue8",
    {
        "event_id": "int",
        "event_type": "Literal['failed']",
        "result": "FailedResult",
        "created_at": "str",
    },
)

SuppressedEventResult = TypedDict(
    "SuppressedEventResult",
    {
        "recipient": NotRequired["str"],
        "reason": "Literal['unsubscribed', 'bounced', 'complained', 'manual', 'erased', 'canceled', 'not_needed']",
        "topic": NotRequired["str"],
    },
)

JobEventValue9 = TypedDict(
    "JobEventValue9",
    {
        "event_id": "int",
        "event_type": "Literal['suppressed']",
        "result": "SuppressedEventResult",
        "created_at": "str",
    },
)

JobPage = TypedDict(
    "JobPage",
    {
        "jobs": "list[ListedJob]",
        "next_cursor": "Union[str, None]",
        "incomplete": "bool",
    },
)

ListedJob = TypedDict(
    "ListedJob",
    {
        "job_id": "str",
        "channel": "Literal['email', 'whatsapp', 'wallet']",
        "status": "Literal['pending', 'running', 'success', 'failed', 'suppressed']",
        "attempts": "int",
        "created_at": "str",
        "finished_at": NotRequired["str"],
        "next_attempt_at": NotRequired["str"],
        "error": NotRequired["str"],
        "failure_class": NotRequired["Literal['recipient', 'mailbox_full', 'domain', 'refused', 'authentication', 'throttled', 'content', 'sender', 'unreachable', 'purged', 'other']"],
        "template": NotRequired["str"],
        "recipient_domain": NotRequired["str"],
        "tags": NotRequired["list[ListedJobTagsItem]"],
    },
)

ListedJobTagsItem = TypedDict(
    "ListedJobTagsItem",
    {
        "name": "str",
        "value": "str",
    },
)

JobExplanation = TypedDict(
    "JobExplanation",
    {
        "job_id": "str",
        "status": "Literal['pending', 'running', 'success', 'failed', 'suppressed']",
        "waits_for": "Union[Literal['turn', 'plan_pace', 'reputation', 'warm_up', 'destination_pace', 'throttled', 'relay_away', 'schedule', 'retry', 'paused'], None]",
        "detail": "str",
        "failure_class": NotRequired["Literal['recipient', 'mailbox_full', 'domain', 'refused', 'authentication', 'throttled', 'content', 'sender', 'unreachable', 'purged', 'other']"],
        "estimated_at": NotRequired["str"],
        "ahead": NotRequired["int"],
        "attempts": "list[JobAttempt]",
    },
)

JobAttempt = TypedDict(
    "JobAttempt",
    {
        "at": "str",
        "outcome": "Literal['retry', 'snooze', 'uncertain', 'sent', 'failed']",
        "relay": NotRequired["str"],
        "reply": NotRequired["str"],
        "ms": NotRequired["int"],
        "failure_class": NotRequired["Literal['recipient', 'mailbox_full', 'domain', 'refused', 'authentication', 'throttled', 'content', 'sender', 'unreachable', 'purged', 'other']"],
        "next_attempt_at": NotRequired["str"],
    },
)

EventPage = TypedDict(
    "EventPage",
    {
        "events": "list[Event]",
        "has_more": "bool",
        "next_cursor": "int",
    },
)

Event: TypeAlias = "Union[EventValue1, EventValue2, EventValue3, EventValue4, EventValue5, EventValue6, EventValue7, EventValue8, EventValue9]"

EventValue1 = TypedDict(
    "EventValue1",
    {
        "event_id": "int",
        "job_id": "str",
        "channel": "Literal['email', 'whatsapp', 'wallet']",
        "event_type": "Literal['sent']",
        "result": "EmptyResult",
        "created_at": "str",
    },
)

EventValue2 = TypedDict(
    "EventValue2",
    {
        "event_id": "int",
        "job_id": "str",
        "channel": "Literal['email', 'whatsapp', 'wallet']",
        "event_type": "Literal['delivered']",
        "result": "RecipientResult",
        "created_at": "str",
    },
)

EventValue3 = TypedDict(
    "EventValue3",
    {
        "event_id": "int",
        "job_id": "str",
        "channel": "Literal['email', 'whatsapp', 'wallet']",
        "event_type": "Literal['read']",
        "result": "EmptyResult",
        "created_at": "str",
    },
)

EventValue4 = TypedDict(
    "EventValue4",
    {
        "event_id": "int",
        "job_id": "str",
        "channel": "Literal['email', 'whatsapp', 'wallet']",
        "event_type": "Literal['opened']",
        "result": "OpenedResult",
        "created_at": "str",
    },
)

EventValue5 = TypedDict(
    "EventValue5",
    {
        "event_id": "int",
        "job_id": "str",
        "channel": "Literal['email', 'whatsapp', 'wallet']",
        "event_type": "Literal['clicked']",
        "result": "ClickedResult",
        "created_at": "str",
    },
)

EventValue6 = TypedDict(
    "EventValue6",
    {
        "event_id": "int",
        "job_id": "str",
        "channel": "Literal['email', 'whatsapp', 'wallet']",
        "event_type": "Literal['bounced']",
        "result": "BouncedResult",
        "created_at": "str",
    },
)

EventValue7 = TypedDict(
    "EventValue7",
    {
        "event_id": "int",
        "job_id": "str",
        "channel": "Literal['email', 'whatsapp', 'wallet']",
        "event_type": "Literal['complained']",
        "result": "EmptyResult",
        "created_at": "str",
    },
)

EventValue8 = TypedDict(
    "EventValue8",
    {
        "event_id": "int",
        "job_id": "str",
        "channel": "Literal['email', 'whatsapp', 'wallet']",
        "event_type": "Literal['failed']",
        "result": "FailedResult",
        "created_at": "str",
    },
)

EventValue9 = TypedDict(
    "EventValue9",
    {
        "event_id": "int",
        "job_id": "str",
        "channel": "Literal['email', 'whatsapp', 'wallet']",
        "event_type": "Literal['suppressed']",
        "result": "SuppressedEventResult",
        "created_at": "str",
    },
)

CreateWebhookBody = TypedDict(
    "CreateWebhookBody",
    {
        "url": "str",
        "event_types": NotRequired["Union[list[Union[Literal['sent'], Literal['delivered'], Literal['read'], Literal['opened'], Literal['clicked'], Literal['bounced'], Literal['complained'], Literal['failed'], Literal['suppressed'], Literal['message.received'], Literal['message.unknown'], Literal['account.updated'], Literal['pass.personalized'], Literal['reputation.warned'], Literal['reputation.slowed'], Literal['reputation.held'], Literal['reputation.released']]], None]"],
        "channels": NotRequired["Union[list[Union[Literal['email'], Literal['whatsapp'], Literal['wallet']]], None]"],
        "description": NotRequired["Union[str, None]"],
        "batch_max": NotRequired["Union[int, None]"],
    },
)

WebhookWithSecret = TypedDict(
    "WebhookWithSecret",
    {
        "webhook_id": "str",
        "url": "str",
        "event_types": "Union[list[Literal['sent', 'delivered', 'read', 'opened', 'clicked', 'bounced', 'complained', 'failed', 'suppressed', 'message.received', 'message.unknown', 'account.updated', 'pass.personalized', 'reputation.warned', 'reputation.slowed', 'reputation.held', 'reputation.released']], None]",
        "channels": "Union[list[Literal['email', 'whatsapp', 'wallet']], None]",
        "description": "Union[str, None]",
        "batch_max": "int",
        "status": "Literal['enabled', 'disabled']",
        "disabled_at": "Union[str, None]",
        "disabled_reason": "Union[Literal['gone', 'failing'], None]",
        "failing_since": "Union[str, None]",
        "next_attempt_at": "Union[str, None]",
        "last_error": "Union[str, None]",
        "last_event_id": "int",
        "blocked_by": "Union[WebhookWithSecretBlockedBy1, None]",
        "replay": "Union[WebhookWithSecretReplay1, None]",
        "created_at": "str",
        "secret": "str",
    },
)

WebhookWithSecretBlockedBy1 = TypedDict(
    "WebhookWithSecretBlockedBy1",
    {
        "after_event_id": "int",
        "through_event_id": "int",
    },
)

WebhookWithSecretReplay1 = TypedDict(
    "WebhookWithSecretReplay1",
    {
        "after_event_id": "int",
        "through_event_id": "int",
    },
)

WebhookList = TypedDict(
    "WebhookList",
    {
        "webhooks": "list[Webhook]",
    },
)

Webhook = TypedDict(
    "Webhook",
    {
        "webhook_id": "str",
        "url": "str",
        "event_types": "Union[list[Literal['sent', 'delivered', 'read', 'opened', 'clicked', 'bounced', 'complained', 'failed', 'suppressed', 'message.received', 'message.unknown', 'account.updated', 'pass.personalized', 'reputation.warned', 'reputation.slowed', 'reputation.held', 'reputation.released']], None]",
        "channels": "Union[list[Literal['email', 'whatsapp', 'wallet']], None]",
        "description": "Union[str, None]",
        "batch_max": "int",
        "status": "Literal['enabled', 'disabled']",
        "disabled_at": "Union[str, None]",
        "disabled_reason": "Union[Literal['gone', 'failing'], None]",
        "failing_since": "Union[str, None]",
        "next_attempt_at": "Union[str, None]",
        "last_error": "Union[str, None]",
        "last_event_id": "int",
        "blocked_by": "Union[WebhookBlockedBy1, None]",
        "replay": "Union[WebhookReplay1, None]",
        "created_at": "str",
    },
)

WebhookBlockedBy1 = TypedDict(
    "WebhookBlockedBy1",
    {
        "after_event_id": "int",
        "through_event_id": "int",
    },
)

WebhookReplay1 = TypedDict(
    "WebhookReplay1",
    {
        "after_event_id": "int",
        "through_event_id": "int",
    },
)

ChangeWebhookBody = TypedDict(
    "ChangeWebhookBody",
    {
        "url": NotRequired["Union[str, None]"],
        "event_types": NotRequired["Union[list[Union[Literal['sent'], Literal['delivered'], Literal['read'], Literal['opened'], Literal['clicked'], Literal['bounced'], Literal['complained'], Literal['failed'], Literal['suppressed'], Literal['message.received'], Literal['message.unknown'], Literal['account.updated'], Literal['pass.personalized'], Literal['reputation.warned'], Literal['reputation.slowed'], Literal['reputation.held'], Literal['reputation.released']]], None]"],
        "channels": NotRequired["Union[list[Union[Literal['email'], Literal['whatsapp'], Literal['wallet']]], None]"],
        "description": NotRequired["Union[str, None]"],
        "batch_max": NotRequired["Union[int, None]"],
    },
)

WebhookAttempt = TypedDict(
    "WebhookAttempt",
    {
        "at": "str",
        "kind": "Literal['events', 'messages', 'test']",
        "message_id": "str",
        "events": "int",
        "first_event_id": "Union[int, None]",
        "last_event_id": "Union[int, None]",
        "delivered": "bool",
        "status": "Union[int, None]",
        "error": "Union[str, None]",
        "request_headers": "Mapping[str, Any]",
        "answer": "Union[str, None]",
        "duration_ms": "int",
    },
)

ReplayWebhookEventsBody = TypedDict(
    "ReplayWebhookEventsBody",
    {
        "from": NotRequired["Union[str, None]"],
        "to": NotRequired["Union[str, None]"],
        "after_event_id": NotRequired["Union[int, None]"],
    },
)

WebhookAttemptPage = TypedDict(
    "WebhookAttemptPage",
    {
        "attempts": "list[WebhookAttempt]",
        "next_cursor": "Union[str, None]",
    },
)

Metrics = TypedDict(
    "Metrics",
    {
        "from": "str",
        "to": "str",
        "timezone": "str",
        "interval": "Union[Literal['hour'], Literal['day'], Literal['week'], Literal['month'], None]",
        "group_by": "Union[Literal['channel'], Literal['domain'], Literal['template'], Literal['tag'], None]",
        "rows": "list[MetricsRow]",
    },
)

MetricsRow = TypedDict(
    "MetricsRow",
    {
        "at": NotRequired["str"],
        "group": NotRequired["str"],
        "sent": NotRequired["int"],
        "delivered": NotRequired["int"],
        "read": NotRequired["int"],
        "opened": NotRequired["int"],
        "clicked": NotRequired["int"],
        "bounced": NotRequired["int"],
        "complained": NotRequired["int"],
        "failed": NotRequired["int"],
        "suppressed": NotRequired["int"],
        "machine_opened": NotRequired["int"],
        "machine_clicked": NotRequired["int"],
        "delivery_rate": NotRequired["Union[float, None]"],
        "open_rate": NotRequired["Union[float, None]"],
        "click_rate": NotRequired["Union[float, None]"],
        "read_rate": NotRequired["Union[float, None]"],
        "bounce_rate": NotRequired["Union[float, None]"],
        "complaint_rate": NotRequired["Union[float, None]"],
    },
)

CreateOwnKeyBody = TypedDict(
    "CreateOwnKeyBody",
    {
        "name": NotRequired["Union[str, None]"],
        "expires_at": NotRequired["Union[str, None]"],
        "scopes": NotRequired["Union[list[Union[Literal['send'], Literal['read'], Literal['manage']]], None]"],
    },
)

NewKey = TypedDict(
    "NewKey",
    {
        "key_id": "str",
        "api_key": "str",
    },
)

KeyList = TypedDict(
    "KeyList",
    {
        "keys": "list[Key]",
    },
)

Key = TypedDict(
    "Key",
    {
        "key_id": "str",
        "prefix": "str",
        "name": "Union[str, None]",
        "created_at": "str",
        "last_used_at": "Union[str, None]",
        "expires_at": "Union[str, None]",
        "scopes": "list[Literal['send', 'read', 'manage']]",
    },
)

TemplateList = TypedDict(
    "TemplateList",
    {
        "templates": "list[Template]",
    },
)

Template: TypeAlias = "Union[TemplateValue1, TemplateValue2]"

TemplateValue1Tracking = TypedDict(
    "TemplateValue1Tracking",
    {
        "opens": NotRequired["bool"],
        "clicks": NotRequired["bool"],
    },
)

TemplateValue1 = TypedDict(
    "TemplateValue1",
    {
        "slug": "str",
        "channel": "Literal['email']",
        "subject": "str",
        "html": "str",
        "text": "Union[str, None]",
        "topic": NotRequired["str"],
        "tracking": NotRequired["TemplateValue1Tracking"],
    },
)

TemplateValue2 = TypedDict(
    "TemplateValue2",
    {
        "slug": "str",
        "channel": "Literal['wallet']",
        "pass_type": "Literal['apple', 'google']",
        "style": "Union[Literal['eventTicket', 'boardingPass', 'coupon', 'storeCard', 'generic', 'posterGeneric'], None]",
        "pass_data": "Union[ApplePassPart, GooglePassPart]",
    },
)

PutOwnTemplateBody1Tracking1 = TypedDict(
    "PutOwnTemplateBody1Tracking1",
    {
        "opens": NotRequired["Union[bool, None]"],
        "clicks": NotRequired["Union[bool, None]"],
    },
)

PutOwnTemplateBody1 = TypedDict(
    "PutOwnTemplateBody1",
    {
        "channel": "Literal['email']",
        "subject": "str",
        "html": "str",
        "text": NotRequired["Union[str, None]"],
        "topic": NotRequired["Union[str, None]"],
        "tracking": NotRequired["Union[PutOwnTemplateBody1Tracking1, None]"],
    },
)

PutOwnTemplateBody2 = TypedDict(
    "PutOwnTemplateBody2",
    {
        "channel": "Literal['wallet']",
        "pass_type": "Union[Literal['apple'], Literal['google']]",
        "style": NotRequired["Union[Union[Literal['eventTicket'], Literal['boardingPass'], Literal['coupon'], Literal['storeCard'], Literal['generic'], Literal['posterGeneric']], None]"],
        "pass_data": "Mapping[str, Any]",
    },
)

PreviewOwnTemplateBody = TypedDict(
    "PreviewOwnTemplateBody",
    {
        "data": NotRequired["Union[Mapping[str, Any], None]"],
    },
)

TemplatePreview: TypeAlias = "Union[TemplatePreviewValue1, TemplatePreviewValue2]"

TemplatePreviewValue1SpamRulesItem = TypedDict(
    "TemplatePreviewValue1SpamRulesItem",
    {
        "rule": "str",
        "score": "float",
        "description": "str",
    },
)

TemplatePreviewValue1Spam = TypedDict(
    "TemplatePreviewValue1Spam",
    {
        "score": "float",
        "rules": "list[TemplatePreviewValue1SpamRulesItem]",
    },
)

TemplatePreviewValue1 = TypedDict(
    "TemplatePreviewValue1",
    {
        "channel": "Literal['email']",
        "subject": "str",
        "html": "str",
        "text": "Union[str, None]",
        "missing": "list[str]",
        "size_bytes": "int",
        "spam": "TemplatePreviewValue1Spam",
    },
)

TemplatePreviewValue2 = TypedDict(
    "TemplatePreviewValue2",
    {
        "channel": "Literal['wallet']",
        "pass_type": "Literal['apple', 'google']",
        "style": "Union[Literal['eventTicket', 'boardingPass', 'coupon', 'storeCard', 'generic', 'posterGeneric'], None]",
        "pass_data": "Mapping[str, Any]",
    },
)

TestOwnTemplateBody = TypedDict(
    "TestOwnTemplateBody",
    {
        "to_address": "str",
        "to_name": NotRequired["Union[str, None]"],
        "data": NotRequired["Union[Mapping[str, Any], None]"],
    },
)

SuppressionPage = TypedDict(
    "SuppressionPage",
    {
        "suppressions": "list[Suppression]",
        "next_cursor": "Union[str, None]",
    },
)

Suppression = TypedDict(
    "Suppression",
    {
        "address": "str",
        "topic": NotRequired["str"],
        "reason": "Literal['unsubscribed', 'bounced', 'complained', 'manual']",
        "created_at": "str",
    },
)

PutOwnSuppressionBody = TypedDict(
    "PutOwnSuppressionBody",
    {
        "reason": NotRequired["Union[Union[Literal['unsubscribed'], Literal['bounced'], Literal['complained'], Literal['manual']], None]"],
        "topic": NotRequired["Union[str, None]"],
    },
)


class Operations(Caller):
    """Every call of a tenant."""

    def send_email(
        self,
        body: EmailSend,
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> PendingJob:
        """Queue an e-mail. Content comes from a template (`template_id`) or from inline `html`. A message with a
        `pass` makes the pass first, for 1 token. 202 means: on disk. Needs a key with the scope `send`.
        """
        answer: PendingJob = self._call(
            "POST",
            "/v1/send/email",
            body=body,
            idempotency_key=idempotency_key,
            repeat="with_key",
            timeout=timeout,
        )
        return answer

    def send_email_batch(
        self,
        body: EmailSendBatch,
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> BatchAnswer:
        """Queue up to 1,000 e-mails. Each message is `defaults` with its own members in their place (`null` removes
        one), and is checked, counted and queued as a request of its own would be. A faulty message becomes an error
        of its index and does not stop the others; the same holds for messages beyond the plan's limits. An
        Idempotency-Key counts for the whole batch: a repeat queues the messages that an earlier call did not reach,
        and returns the first answer again once there is one. Needs a key with the scope `send`.
        """
        answer: BatchAnswer = self._call(
            "POST",
            "/v1/send/email/batch",
            body=body,
            idempotency_key=idempotency_key,
            repeat="with_key",
            timeout=timeout,
        )
        return answer

    def list_domains(
        self,
        *,
        timeout: float | None = None,
    ) -> DomainList:
        """The tenant's sending domains. Needs a key with the scope `read`."""
        answer: DomainList = self._call(
            "GET",
            "/v1/domains",
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def get_domain(
        self,
        domain: str,
        *,
        timeout: float | None = None,
    ) -> Domain:
        """One domain, with the records to publish for it. Needs a key with the scope `read`."""
        answer: Domain = self._call(
            "GET",
            "/v1/domains/{domain}",
            path_values={"domain": domain},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def verify_domain(
        self,
        domain: str,
        *,
        timeout: float | None = None,
    ) -> Domain:
        """Look at a domain's records again. A name server that does not answer changes no status. Mail can be sent
        from the domain once it is verified. Needs a key with the scope `manage`.
        """
        answer: Domain = self._call(
            "POST",
            "/v1/domains/{domain}/verify",
            path_values={"domain": domain},
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def send_whatsapp(
        self,
        body: ChatSend,
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> PendingJob:
        """Queue a chat message. A template that the provider has approved with its values, or an answer (text, media,
        a location, contacts, a reaction or an interactive message) to somebody who wrote to the sending number
        within the last 24 hours. A message with a `pass` makes the pass first, for 1 token; a value that is
        `{{.pass.save_link}}`, `{{.pass.save_token}}` (Google), `{{.pass.download_url}}`, `{{.pass.download_token}}`
        (Apple) or `{{.pass.pass_id}}` alone is replaced by the pass's own value. 202 means: on disk. 500 where
        neither the tenant nor the platform has credentials for the provider. Needs a key with the scope `send`.
        """
        answer: PendingJob = self._call(
            "POST",
            "/v1/send/whatsapp",
            body=body,
            idempotency_key=idempotency_key,
            repeat="with_key",
            timeout=timeout,
        )
        return answer

    def send_whatsapp_batch(
        self,
        body: ChatSendBatch,
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> BatchAnswer:
        """Queue up to 1,000 chat messages. Each message is `defaults` with its own members in their place (`null`
        removes one), and is checked, counted and queued as a request of its own would be. A faulty message becomes
        an error of its index and does not stop the others; the same holds for messages beyond the plan's limits. An
        Idempotency-Key counts for the whole batch: a repeat queues the messages that an earlier call did not reach,
        and returns the first answer again once there is one. Needs a key with the scope `send`.
        """
        answer: BatchAnswer = self._call(
            "POST",
            "/v1/send/whatsapp/batch",
            body=body,
            idempotency_key=idempotency_key,
            repeat="with_key",
            timeout=timeout,
        )
        return answer

    def list_own_aliases(
        self,
        *,
        timeout: float | None = None,
    ) -> AliasList:
        """List a tenant's names for chat templates. Needs a key with the scope `read`."""
        answer: AliasList = self._call(
            "GET",
            "/v1/aliases",
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def put_own_alias(
        self,
        alias: str,
        body: PutOwnAliasBody,
        *,
        timeout: float | None = None,
    ) -> Alias:
        """Create or replace a tenant's name for a chat template. Needs a key with the scope `manage`."""
        answer: Alias = self._call(
            "PUT",
            "/v1/aliases/{alias}",
            path_values={"alias": alias},
            body=body,
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def get_own_alias(
        self,
        alias: str,
        *,
        timeout: float | None = None,
    ) -> Alias:
        """One alias. Needs a key with the scope `read`."""
        answer: Alias = self._call(
            "GET",
            "/v1/aliases/{alias}",
            path_values={"alias": alias},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def delete_own_alias(
        self,
        alias: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """Delete an alias. Needs a key with the scope `manage`."""
        answer: None = self._call(
            "DELETE",
            "/v1/aliases/{alias}",
            path_values={"alias": alias},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def list_own_chat_templates(
        self,
        *,
        timeout: float | None = None,
    ) -> ChatTemplates:
        """List the chat templates of a tenant's own account, as they were read last. Needs a key with the scope
        `read`.
        """
        answer: ChatTemplates = self._call(
            "GET",
            "/v1/whatsapp/templates",
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def sync_own_chat_templates(
        self,
        *,
        timeout: float | None = None,
    ) -> ChatTemplates:
        """Read the chat templates of a tenant's own account from the provider. The list is kept, and what the
        provider's callbacks say of a template changes it. A send whose template does not fit is answered 400 from
        then on. 409 where the tenant's credentials name no account, or the provider does not list its templates.
        Needs a key with the scope `manage`.
        """
        answer: ChatTemplates = self._call(
            "POST",
            "/v1/whatsapp/templates/sync",
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def send_wallet(
        self,
        body: PassRequest,
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> PendingJob:
        """Queue a wallet pass. A pass costs 1 token, which is given back should the job fail. Keys of an Apple pass
        may be written as `auxiliary_fields` or as Apple does (`auxiliaryFields`), but not as both; further keys of
        Apple's pass.json are taken in the same two spellings, unknown ones are refused. Images are PNGs in base64
        or a data URL of at most 2 MiB each, and 4 MiB in one pass. With `template_id`, type, style and whatever the
        request leaves out or gives as null come from the template; fields are merged by their key, text modules by
        their id, and where both say something the request wins. A Google pass is a generic one unless `class_type`
        says otherwise. Needs a key with the scope `send`.
        """
        answer: PendingJob = self._call(
            "POST",
            "/v1/send/wallet",
            body=body,
            idempotency_key=idempotency_key,
            repeat="with_key",
            timeout=timeout,
        )
        return answer

    def create_pass(
        self,
        body: PassRequest,
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> PendingJob:
        """Queue a wallet pass, a Google one as an event ticket. A pass costs 1 token, which is given back should the
        job fail. Keys of an Apple pass may be written as `auxiliary_fields` or as Apple does (`auxiliaryFields`),
        but not as both; further keys of Apple's pass.json are taken in the same two spellings, unknown ones are
        refused. Images are PNGs in base64 or a data URL of at most 2 MiB each, and 4 MiB in one pass. With
        `template_id`, type, style and whatever the request leaves out or gives as null come from the template;
        fields are merged by their key, text modules by their id, and where both say something the request wins. A
        Google pass is an event ticket unless `class_type` says otherwise. Needs a key with the scope `send`.
        """
        answer: PendingJob = self._call(
            "POST",
            "/v1/passes/create",
            body=body,
            idempotency_key=idempotency_key,
            repeat="with_key",
            timeout=timeout,
        )
        return answer

    def update_pass(
        self,
        id: str,
        body: PassUpdate,
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> UpdatingPass:
        """Change a pass, and tell the devices that have it. Fields are merged by their `key` (a Google object's text
        modules by their `id`), every other key is replaced, null removes it. A field whose `value` is null is taken
        off, and one that is named in another group of fields moves there. An update without a change makes no
        version and no push; an empty image leaves the present one, and a pass cannot get more than 4 MiB of images.
        A field with `changeMessage` shows a banner, and so does `notify_message` for a Google pass. It is free of
        charge. Versions follow the order in which updates are accepted. Where a 429 says that the share of the
        queue is used up, the pass may be changed already: repeat the request, and its holders are told. Needs a key
        with the scope `send`.
        """
        answer: UpdatingPass = self._call(
            "PUT",
            "/v1/passes/{id}",
            path_values={"id": id},
            body=body,
            idempotency_key=idempotency_key,
            repeat="with_key",
            timeout=timeout,
        )
        return answer

    def download_pass(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> bytes:
        """The file of an Apple pass. Needs a key with the scope `read`."""
        answer: bytes = self._call(
            "GET",
            "/v1/passes/{id}/download",
            path_values={"id": id},
            repeat="safe",
            raw=True,
            timeout=timeout,
        )
        return answer

    def get_pass_status(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> PassStatus:
        """Whether a pass is valid, and on how many devices. A Google pass is looked up at Google each time. Needs a
        key with the scope `read`.
        """
        answer: PassStatus = self._call(
            "GET",
            "/v1/passes/{id}/status",
            path_values={"id": id},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def link_passes(
        self,
        body: LinkPassesBody,
        *,
        timeout: float | None = None,
    ) -> PassLink:
        """A public link to Apple passes, which come as one file. Of several passes the file is a `.pkpasses` bundle,
        and Wallet adds all of them at once. The link has no end, and leads to the latest version of each pass.
        Needs a key with the scope `read`.
        """
        answer: PassLink = self._call(
            "POST",
            "/v1/passes/link",
            body=body,
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def create_google_class(
        self,
        body: NewGoogleClass,
        *,
        timeout: float | None = None,
    ) -> GoogleClassChange:
        """Create a class of Google passes. One a kind of pass or event: its passes show what it says. Ids begin with
        the issuer id and a dot. With the platform's issuer, which tenants share, a class belongs to the tenant that
        creates it or is the first to use it: no other can create, change or read it, or have passes of it. Needs a
        key with the scope `send`.
        """
        answer: GoogleClassChange = self._call(
            "POST",
            "/v1/google/classes",
            body=body,
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def change_google_class(
        self,
        id: str,
        body: GoogleClassUpdate,
        *,
        timeout: float | None = None,
    ) -> GoogleClassChange:
        """Change a class, and with it all its passes. Members that are given replace what the class says, null removes
        one; `venue`, `dateTime`, `origin`, `destination` and `flightHeader` are changed member by member. The class
        is submitted for review with every change (`reviewStatus` UNDER_REVIEW), but for a draft that is to stay one
        (DRAFT). Needs a key with the scope `send`.
        """
        answer: GoogleClassChange = self._call(
            "PUT",
            "/v1/google/classes/{id}",
            path_values={"id": id},
            body=body,
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def get_google_class(
        self,
        id: str,
        *,
        class_type: Literal["generic", "eventTicket", "loyalty", "offer", "giftCard", "transit", "flight"],
        timeout: float | None = None,
    ) -> GoogleClass:
        """A class as Google holds it. Needs a key with the scope `read`."""
        answer: GoogleClass = self._call(
            "GET",
            "/v1/google/classes/{id}",
            path_values={"id": id},
            query={"class_type": class_type},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def reschedule_job(
        self,
        id: str,
        body: Reschedule,
        *,
        timeout: float | None = None,
    ) -> ScheduledJob:
        """Move a scheduled job to another time. A time that is past, or now, sends it at once. 409 once its time has
        come. Needs a key with the scope `send`.
        """
        answer: ScheduledJob = self._call(
            "PATCH",
            "/v1/jobs/{id}",
            path_values={"id": id},
            body=body,
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def get_job(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> Job:
        """Show a job's status and result. Needs a key with the scope `read`."""
        answer: Job = self._call(
            "GET",
            "/v1/jobs/{id}",
            path_values={"id": id},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def cancel_job(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> CanceledJob:
        """Cancel a job that was not handed over. It ends as `suppressed` with the reason `canceled`, is not billed,
        and a pass gives its token back. Repeated, the answer is the same. 409 if its delivery has begun, or may
        have. Needs a key with the scope `send`.
        """
        answer: CanceledJob = self._call(
            "POST",
            "/v1/jobs/{id}/cancel",
            path_values={"id": id},
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def get_job_events(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> JobEvents:
        """Delivery history of one job, oldest first. Needs a key with the scope `read`."""
        answer: JobEvents = self._call(
            "GET",
            "/v1/jobs/{id}/events",
            path_values={"id": id},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def list_own_jobs(
        self,
        *,
        status: Literal["pending", "running", "success", "failed", "suppressed"] | None = None,
        channel: Literal["email", "whatsapp", "wallet"] | None = None,
        recipient: str | None = None,
        template: str | None = None,
        tag: str | None = None,
        failure_class: Literal["recipient", "mailbox_full", "domain", "refused", "authentication", "throttled", "content", "sender", "unreachable", "purged", "other"] | None = None,
        from_: str | None = None,
        to: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> JobPage:
        """The tenant's jobs, newest first. Unfinished and finished ones; finished ones are kept for `JOBS_KEPT_DAYS`.
        A job is on one page only, even if it ends meanwhile. A page can have fewer jobs than `limit`, even none:
        the list goes on while there is a `next_cursor`. One list of a tenant is read at a time, and a few wait for
        it. Needs a key with the scope `read`.
        """
        answer: JobPage = self._call(
            "GET",
            "/v1/jobs",
            query={"status": status, "channel": channel, "recipient": recipient, "template": template, "tag": tag, "failure_class": failure_class, "from": from_, "to": to, "cursor": cursor, "limit": limit},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def iterate_own_jobs(
        self,
        *,
        status: Literal["pending", "running", "success", "failed", "suppressed"] | None = None,
        channel: Literal["email", "whatsapp", "wallet"] | None = None,
        recipient: str | None = None,
        template: str | None = None,
        tag: str | None = None,
        failure_class: Literal["recipient", "mailbox_full", "domain", "refused", "authentication", "throttled", "content", "sender", "unreachable", "purged", "other"] | None = None,
        from_: str | None = None,
        to: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[ListedJob]:
        """All items of `list_own_jobs`: pages are fetched as they are needed."""
        return self._items(
            lambda cursor: self.list_own_jobs(
                status=status,
                channel=channel,
                recipient=recipient,
                template=template,
                tag=tag,
                failure_class=failure_class,
                from_=from_,
                to=to,
                limit=limit,
                timeout=timeout,
                cursor=cursor,
            ),
            "jobs",
        )

    def explain_job(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> JobExplanation:
        """Why a job waits, and how each of its tries ended. Reasons known to the delivering process alone (a pace, an
        unavailable mail server) are missing if that process does not answer at once; `waits_for` is then `turn`.
        Needs a key with the scope `read`.
        """
        answer: JobExplanation = self._call(
            "GET",
            "/v1/jobs/{id}/explain",
            path_values={"id": id},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def list_events(
        self,
        *,
        from_: str,
        to: str,
        channel: Literal["email", "whatsapp", "wallet"] | None = None,
        event_type: Literal["sent", "delivered", "read", "opened", "clicked", "bounced", "complained", "failed", "suppressed"] | None = None,
        limit: int | None = None,
        cursor: int | None = None,
        timeout: float | None = None,
    ) -> EventPage:
        """Delivery history of the tenant, newest first. For more than 31 days, split the export into several calls.
        Unknown parameters are refused. Needs a key with the scope `read`.
        """
        answer: EventPage = self._call(
            "GET",
            "/v1/events",
            query={"from": from_, "to": to, "channel": channel, "event_type": event_type, "limit": limit, "cursor": cursor},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def iterate_events(
        self,
        *,
        from_: str,
        to: str,
        channel: Literal["email", "whatsapp", "wallet"] | None = None,
        event_type: Literal["sent", "delivered", "read", "opened", "clicked", "bounced", "complained", "failed", "suppressed"] | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[Event]:
        """All items of `list_events`: pages are fetched as they are needed."""
        return self._items(
            lambda cursor: self.list_events(
                from_=from_,
                to=to,
                channel=channel,
                event_type=event_type,
                limit=limit,
                timeout=timeout,
                cursor=cursor,
            ),
            "events",
        )

    def create_webhook(
        self,
        body: CreateWebhookBody,
        *,
        timeout: float | None = None,
    ) -> WebhookWithSecret:
        """Register an address for events. It receives the events from now on. The answer has the secret that calls are
        signed with (Standard Webhooks), which is not shown again. Needs a key with the scope `manage`.
        """
        answer: WebhookWithSecret = self._call(
            "POST",
            "/v1/webhooks",
            body=body,
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def list_webhooks(
        self,
        *,
        timeout: float | None = None,
    ) -> WebhookList:
        """The tenant's webhooks. Needs a key with the scope `read`."""
        answer: WebhookList = self._call(
            "GET",
            "/v1/webhooks",
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def get_webhook(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> Webhook:
        """One webhook, and how its receiver does. Needs a key with the scope `read`."""
        answer: Webhook = self._call(
            "GET",
            "/v1/webhooks/{id}",
            path_values={"id": id},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def change_webhook(
        self,
        id: str,
        body: ChangeWebhookBody,
        *,
        timeout: float | None = None,
    ) -> Webhook:
        """Change a webhook. Members that are left out stay as they are; null is the default. A new address is called
        at once, unless the webhook is disabled: then once it is enabled. Needs a key with the scope `manage`.
        """
        answer: Webhook = self._call(
            "PATCH",
            "/v1/webhooks/{id}",
            path_values={"id": id},
            body=body,
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def delete_webhook(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """Delete a webhook and its log. Needs a key with the scope `manage`."""
        answer: None = self._call(
            "DELETE",
            "/v1/webhooks/{id}",
            path_values={"id": id},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def rotate_webhook_secret(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> WebhookWithSecret:
        """Sign with a new secret. For 24 hours, the former secret signs, too: calls then carry two signatures. Needs a
        key with the scope `manage`.
        """
        answer: WebhookWithSecret = self._call(
            "POST",
            "/v1/webhooks/{id}/rotate-secret",
            path_values={"id": id},
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def test_webhook(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> WebhookAttempt:
        """Call a webhook now. With a signed `webhook.test` in place of an event, outside the order of events and also
        while the webhook is disabled. Only the log changes. Needs a key with the scope `manage`.
        """
        answer: WebhookAttempt = self._call(
            "POST",
            "/v1/webhooks/{id}/test",
            path_values={"id": id},
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def replay_webhook_events(
        self,
        id: str,
        body: ReplayWebhookEventsBody,
        *,
        timeout: float | None = None,
    ) -> Webhook:
        """Deliver events again. The events of a span of time (`from` and, if not until now, `to`), or all after an
        event (`after_event_id`), as the webhook selects them now, and messages that came in at that time. A span
        comes first, in its order and under its original ids; then the webhook resumes where it was, and `replay`
        shows the progress. Up to now, the webhook's own position moves back, and there is no `replay`. An
        `after_event_id` ahead of that position skips what lies between, such as an event that the receiver cannot
        process (`blocked_by`), and the webhook is called at once. Another replay replaces one that has not ended.
        Needs a key with the scope `manage`.
        """
        answer: Webhook = self._call(
            "POST",
            "/v1/webhooks/{id}/replay",
            path_values={"id": id},
            body=body,
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def enable_webhook(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> Webhook:
        """Enable a webhook that was disabled. It goes on where it stopped. One that waits for a repeat is called at
        once. Needs a key with the scope `manage`.
        """
        answer: Webhook = self._call(
            "POST",
            "/v1/webhooks/{id}/enable",
            path_values={"id": id},
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def list_webhook_attempts(
        self,
        id: str,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> WebhookAttemptPage:
        """A webhook's latest calls, newest first. About the last 500 of the last seven days. Where many calls a second
        succeed, some are left out. Needs a key with the scope `read`.
        """
        answer: WebhookAttemptPage = self._call(
            "GET",
            "/v1/webhooks/{id}/attempts",
            path_values={"id": id},
            query={"cursor": cursor, "limit": limit},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def iterate_webhook_attempts(
        self,
        id: str,
        *,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[WebhookAttempt]:
        """All items of `list_webhook_attempts`: pages are fetched as they are needed."""
        return self._items(
            lambda cursor: self.list_webhook_attempts(
                id,
                limit=limit,
                timeout=timeout,
                cursor=cursor,
            ),
            "attempts",
        )

    def get_metrics(
        self,
        *,
        from_: str,
        to: str,
        metrics: str | None = None,
        interval: Literal["hour", "day", "week", "month"] | None = None,
        group_by: Literal["channel", "domain", "template", "tag"] | None = None,
        channel: Literal["email", "whatsapp", "wallet"] | None = None,
        timezone: str | None = None,
        timeout: float | None = None,
    ) -> Metrics:
        """Sums of the tenant's events, and rates. By the day an event was recorded, so a rate of yesterday can still
        rise. Events about copies count: a mail to three has one `sent` and up to three `delivered`. `opened` and
        `clicked` are people's; machines' are `machine_opened` and `machine_clicked`. By time and channel at any
        volume and for 366 days (by the hour 31); by domain, template and tag, and in zones that are half an hour
        off, for 31 days with at most 2,000,000 events. Needs a key with the scope `read`.
        """
        answer: Metrics = self._call(
            "GET",
            "/v1/metrics",
            query={"metrics": metrics, "from": from_, "to": to, "interval": interval, "group_by": group_by, "channel": channel, "timezone": timezone},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def create_own_key(
        self,
        body: CreateOwnKeyBody | None = None,
        *,
        timeout: float | None = None,
    ) -> NewKey:
        """Make a key, which is shown this once. Requests with a key that has expired are refused with 401. Without
        `scopes` an operator's key allows everything, and a tenant's what the calling key does, which is also the
        most it can. Tenants make up to 100 keys. Needs a key with the scope `manage`.
        """
        answer: NewKey = self._call(
            "POST",
            "/v1/keys",
            body=body,
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def list_own_keys(
        self,
        *,
        timeout: float | None = None,
    ) -> KeyList:
        """List a tenant's keys, without the keys themselves. Needs a key with the scope `manage`."""
        answer: KeyList = self._call(
            "GET",
            "/v1/keys",
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def revoke_own_key(
        self,
        key_id: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """Revoke a key, on every process within a second. Only an operator can revoke the last key that allows
        `manage` and has not expired. Needs a key with the scope `manage`.
        """
        answer: None = self._call(
            "DELETE",
            "/v1/keys/{key_id}",
            path_values={"key_id": key_id},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def list_own_templates(
        self,
        *,
        timeout: float | None = None,
    ) -> TemplateList:
        """List a tenant's templates. Needs a key with the scope `read`."""
        answer: TemplateList = self._call(
            "GET",
            "/v1/templates",
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def put_own_template(
        self,
        slug: str,
        body: Union[PutOwnTemplateBody1, PutOwnTemplateBody2],
        *,
        timeout: float | None = None,
    ) -> Template:
        """Create or replace a template of an e-mail or a pass. Needs a key with the scope `manage`."""
        answer: Template = self._call(
            "PUT",
            "/v1/templates/{slug}",
            path_values={"slug": slug},
            body=body,
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def get_own_template(
        self,
        slug: str,
        *,
        timeout: float | None = None,
    ) -> Template:
        """One template. Needs a key with the scope `read`."""
        answer: Template = self._call(
            "GET",
            "/v1/templates/{slug}",
            path_values={"slug": slug},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def delete_own_template(
        self,
        slug: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """Delete a template. Needs a key with the scope `manage`."""
        answer: None = self._call(
            "DELETE",
            "/v1/templates/{slug}",
            path_values={"slug": slug},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def preview_own_template(
        self,
        slug: str,
        body: PreviewOwnTemplateBody,
        *,
        timeout: float | None = None,
    ) -> TemplatePreview:
        """Preview a template with the given values, without sending or storing. Needs a key with the scope `read`."""
        answer: TemplatePreview = self._call(
            "POST",
            "/v1/templates/{slug}/preview",
            path_values={"slug": slug},
            body=body,
            repeat="unsafe",
            timeout=timeout,
        )
        return answer

    def test_own_template(
        self,
        slug: str,
        body: TestOwnTemplateBody,
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> PendingJob:
        """Send one message made of a template. Queues a job of the tenant, as a send of its own does: with its sender,
        suppressions and share of the queue. An operator's call does not count against the tenant's rate limit.
        Needs a key with the scope `send`.
        """
        answer: PendingJob = self._call(
            "POST",
            "/v1/templates/{slug}/test",
            path_values={"slug": slug},
            body=body,
            idempotency_key=idempotency_key,
            repeat="with_key",
            timeout=timeout,
        )
        return answer

    def list_own_suppressions(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        address: str | None = None,
        timeout: float | None = None,
    ) -> SuppressionPage:
        """Whom the tenant's messages no longer go to, in the order of addresses. Needs a key with the scope `read`."""
        answer: SuppressionPage = self._call(
            "GET",
            "/v1/suppressions",
            query={"cursor": cursor, "limit": limit, "address": address},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def iterate_own_suppressions(
        self,
        *,
        limit: int | None = None,
        address: str | None = None,
        timeout: float | None = None,
    ) -> Iterator[Suppression]:
        """All items of `list_own_suppressions`: pages are fetched as they are needed."""
        return self._items(
            lambda cursor: self.list_own_suppressions(
                limit=limit,
                address=address,
                timeout=timeout,
                cursor=cursor,
            ),
            "suppressions",
        )

    def put_own_suppression(
        self,
        address: str,
        body: PutOwnSuppressionBody,
        *,
        timeout: float | None = None,
    ) -> Suppression:
        """Suppress an address: no message is sent to it any more. A tenant adds up to 1,000,000 addresses, beside
        those that recipients and bounces do. Needs a key with the scope `manage`.
        """
        answer: Suppression = self._call(
            "PUT",
            "/v1/suppressions/{address}",
            path_values={"address": address},
            body=body,
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def get_own_suppression(
        self,
        address: str,
        *,
        topic: str | None = None,
        timeout: float | None = None,
    ) -> Suppression:
        """Whether the tenant's messages no longer go to this address, and why. Needs a key with the scope `read`."""
        answer: Suppression = self._call(
            "GET",
            "/v1/suppressions/{address}",
            path_values={"address": address},
            query={"topic": topic},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def delete_own_suppression(
        self,
        address: str,
        *,
        topic: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Send to this address again. Needs a key with the scope `manage`."""
        answer: None = self._call(
            "DELETE",
            "/v1/suppressions/{address}",
            path_values={"address": address},
            query={"topic": topic},
            repeat="safe",
            timeout=timeout,
        )
        return answer


class EmailsCalls:
    """`waybill.emails`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.send = calls.send_email
        self.send_batch = calls.send_email_batch


class WhatsappCalls:
    """`waybill.whatsapp`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.send = calls.send_whatsapp
        self.send_batch = calls.send_whatsapp_batch


class PassesCalls:
    """`waybill.passes`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.create = calls.create_pass
        self.update = calls.update_pass
        self.status = calls.get_pass_status
        self.link = calls.link_passes
        self.download = calls.download_pass


class WalletCalls:
    """`waybill.wallet`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.send = calls.send_wallet


class GoogleClassesCalls:
    """`waybill.google_classes`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.create = calls.create_google_class
        self.update = calls.change_google_class
        self.get = calls.get_google_class


class JobsCalls:
    """`waybill.jobs`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.list = calls.iterate_own_jobs
        self.explain = calls.explain_job
        self.get = calls.get_job
        self.events = calls.get_job_events
        self.reschedule = calls.reschedule_job
        self.cancel = calls.cancel_job


class EventsCalls:
    """`waybill.events`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.list = calls.iterate_events


class WebhooksCalls:
    """`waybill.webhooks`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.create = calls.create_webhook
        self.list = calls.list_webhooks
        self.get = calls.get_webhook
        self.change = calls.change_webhook
        self.delete = calls.delete_webhook
        self.rotate_secret = calls.rotate_webhook_secret
        self.test = calls.test_webhook
        self.replay = calls.replay_webhook_events
        self.enable = calls.enable_webhook
        self.attempts = calls.iterate_webhook_attempts


class DomainsCalls:
    """`waybill.domains`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.list = calls.list_domains
        self.get = calls.get_domain
        self.verify = calls.verify_domain


class KeysCalls:
    """`waybill.keys`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.create = calls.create_own_key
        self.list = calls.list_own_keys
        self.revoke = calls.revoke_own_key


class TemplatesCalls:
    """`waybill.templates`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.list = calls.list_own_templates
        self.get = calls.get_own_template
        self.put = calls.put_own_template
        self.preview = calls.preview_own_template
        self.test = calls.test_own_template
        self.delete = calls.delete_own_template


class AliasesCalls:
    """`waybill.aliases`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.list = calls.list_own_aliases
        self.get = calls.get_own_alias
        self.put = calls.put_own_alias
        self.delete = calls.delete_own_alias


class ChatTemplatesCalls:
    """`waybill.chat_templates`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.list = calls.list_own_chat_templates
        self.sync = calls.sync_own_chat_templates


class SuppressionsCalls:
    """`waybill.suppressions`, as in TypeScript."""

    def __init__(self, calls: Operations) -> None:
        self.list = calls.iterate_own_suppressions
        self.get = calls.get_own_suppression
        self.put = calls.put_own_suppression
        self.delete = calls.delete_own_suppression


class GroupedOperations(Operations):
    """Every call, also by the names that it has in TypeScript."""

    def _group(self) -> None:
        self.emails = EmailsCalls(self)
        self.whatsapp = WhatsappCalls(self)
        self.passes = PassesCalls(self)
        self.wallet = WalletCalls(self)
        self.google_classes = GoogleClassesCalls(self)
        self.jobs = JobsCalls(self)
        self.events = EventsCalls(self)
        self.webhooks = WebhooksCalls(self)
        self.domains = DomainsCalls(self)
        self.keys = KeysCalls(self)
        self.templates = TemplatesCalls(self)
        self.aliases = AliasesCalls(self)
        self.chat_templates = ChatTemplatesCalls(self)
        self.suppressions = SuppressionsCalls(self)
