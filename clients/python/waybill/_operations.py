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
        "data": NotRequired["Union[Mapping[str, Any], None]"],
    },
)

PendingJob = TypedDict(
    "PendingJob",
    {
        "job_id": "str",
        "status": "Literal['pending']",
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
        "phone_number": "str",
        "template_id": "str",
        "language_code": NotRequired["Union[str, None]"],
        "params": NotRequired["Union[list[Union[str, float, bool]], None]"],
    },
)

PassRequest: TypeAlias = "Union[ApplePassRequest, GooglePassRequest, TemplatePassRequest]"

ApplePassRequest = TypedDict(
    "ApplePassRequest",
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
        "style": NotRequired["Union[Literal['eventTicket', 'boardingPass', 'coupon', 'storeCard', 'generic'], None]"],
        "transit_type": NotRequired["Union[Literal['PKTransitTypeGeneric', 'PKTransitTypeAir', 'PKTransitTypeBoat', 'PKTransitTypeBus', 'PKTransitTypeTrain'], None]"],
        "background_color": NotRequired["Union[str, None]"],
        "foreground_color": NotRequired["Union[str, None]"],
        "label_color": NotRequired["Union[str, None]"],
        "logo_text": NotRequired["Union[str, None]"],
        "barcodes": NotRequired["Union[list[PassBarcode], None]"],
        "header_fields": NotRequired["Union[list[PassField], None]"],
        "primary_fields": NotRequired["Union[list[PassField], None]"],
        "secondary_fields": NotRequired["Union[list[PassField], None]"],
        "auxiliary_fields": NotRequired["Union[list[PassField], None]"],
        "back_fields": NotRequired["Union[list[PassField], None]"],
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
        "app_launch_url": NotRequired["Union[str, None]"],
        "associated_store_identifiers": NotRequired["Union[list[int], None]"],
        "user_info": NotRequired["Union[Mapping[str, Any], None]"],
        "semantics": NotRequired["Union[Mapping[str, Any], None]"],
        "nfc": NotRequired["Union[ApplePassDataNfc1, None]"],
        "preferred_style_schemes": NotRequired["Union[list[str], None]"],
    },
)

PassBarcode = TypedDict(
    "PassBarcode",
    {
        "message": "str",
        "format": "Literal['PKBarcodeFormatQR', 'PKBarcodeFormatPDF417', 'PKBarcodeFormatAztec', 'PKBarcodeFormatCode128']",
        "messageEncoding": NotRequired["Union[str, None]"],
        "altText": NotRequired["Union[str, None]"],
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
        "encryptionPublicKey": NotRequired["Union[str, None]"],
        "requiresAuthentication": NotRequired["Union[bool, None]"],
    },
)

GooglePassRequest = TypedDict(
    "GooglePassRequest",
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
        "class_type": NotRequired["Union[Literal['generic', 'eventTicket', ''], None]"],
        "object_id": "str",
        "object_data": "GooglePassObject",
    },
)

GooglePassObject: TypeAlias = "Mapping[str, Any]"

TemplatePassRequest = TypedDict(
    "TemplatePassRequest",
    {
        "template_id": "str",
        "pass_type": NotRequired["Union[Literal['apple', 'google'], None]"],
        "pass_data": NotRequired["Union[Union[ApplePassPart, GooglePassPart], None]"],
    },
)

ApplePassPart = TypedDict(
    "ApplePassPart",
    {
        "serial_number": NotRequired["str"],
        "organization_name": NotRequired["str"],
        "description": NotRequired["str"],
        "style": NotRequired["Union[Literal['eventTicket', 'boardingPass', 'coupon', 'storeCard', 'generic'], None]"],
        "transit_type": NotRequired["Union[Literal['PKTransitTypeGeneric', 'PKTransitTypeAir', 'PKTransitTypeBoat', 'PKTransitTypeBus', 'PKTransitTypeTrain'], None]"],
        "background_color": NotRequired["Union[str, None]"],
        "foreground_color": NotRequired["Union[str, None]"],
        "label_color": NotRequired["Union[str, None]"],
        "logo_text": NotRequired["Union[str, None]"],
        "barcodes": NotRequired["Union[list[PassBarcode], None]"],
        "header_fields": NotRequired["Union[list[PassField], None]"],
        "primary_fields": NotRequired["Union[list[PassField], None]"],
        "secondary_fields": NotRequired["Union[list[PassField], None]"],
        "auxiliary_fields": NotRequired["Union[list[PassField], None]"],
        "back_fields": NotRequired["Union[list[PassField], None]"],
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
        "app_launch_url": NotRequired["Union[str, None]"],
        "associated_store_identifiers": NotRequired["Union[list[int], None]"],
        "user_info": NotRequired["Union[Mapping[str, Any], None]"],
        "semantics": NotRequired["Union[Mapping[str, Any], None]"],
        "nfc": NotRequired["Union[ApplePassPartNfc1, None]"],
        "preferred_style_schemes": NotRequired["Union[list[str], None]"],
    },
)

ApplePassPartNfc1 = TypedDict(
    "ApplePassPartNfc1",
    {
        "message": "str",
        "encryptionPublicKey": NotRequired["Union[str, None]"],
        "requiresAuthentication": NotRequired["Union[bool, None]"],
    },
)

GooglePassPart = TypedDict(
    "GooglePassPart",
    {
        "class_id": NotRequired["str"],
        "class_type": NotRequired["Union[Literal['generic', 'eventTicket', ''], None]"],
        "object_id": NotRequired["str"],
        "object_data": NotRequired["GooglePassObject"],
    },
)

PassUpdate = TypedDict(
    "PassUpdate",
    {
        "pass_data": "Union[ApplePassPart, GooglePassChange]",
        "notify_message": NotRequired["Union[str, None]"],
        "notification_kind": NotRequired["Union[Literal['match.upcoming', 'match.result.recorded', 'player.advanced', 'tournament.finished'], None]"],
    },
)

GooglePassChange: TypeAlias = "Mapping[str, Any]"

UpdatingPass = TypedDict(
    "UpdatingPass",
    {
        "pass_id": "str",
        "job_id": "str",
        "status": "Literal['updating']",
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

NewGoogleClass: TypeAlias = "Union[NewEventTicketClass, NewGenericClass]"

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

GoogleClassChange = TypedDict(
    "GoogleClassChange",
    {
        "status": "Literal['created', 'updated']",
        "class_id": "str",
    },
)

GoogleClassUpdate: TypeAlias = "Union[EventTicketClassUpdate, GenericClassUpdate]"

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

GoogleClass: TypeAlias = "Mapping[str, Any]"

Job: TypeAlias = "Union[JobValue1, JobValue2, JobValue3, JobValue4]"

JobValue1 = TypedDict(
    "JobValue1",
    {
        "job_id": "str",
        "status": "Literal['pending', 'running']",
    },
)

PassResult = TypedDict(
    "PassResult",
    {
        "pass_id": "str",
        "pkpass_base64": NotRequired["str"],
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
        "reason": "Literal['unsubscribed', 'bounced', 'complained', 'manual', 'erased']",
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

JobEventValue2 = TypedDict(
    "JobEventValue2",
    {
        "event_id": "int",
        "event_type": "Literal['delivered']",
        "result": "EmptyResult",
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

JobEventValue4 = TypedDict(
    "JobEventValue4",
    {
        "event_id": "int",
        "event_type": "Literal['opened']",
        "result": "EmptyResult",
        "created_at": "str",
    },
)

ClickedResult = TypedDict(
    "ClickedResult",
    {
        "url": "str",
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

JobEventValue9 = TypedDict(
    "JobEventValue9",
    {
        "event_id": "int",
        "event_type": "Literal['suppressed']",
        "result": "SuppressedResult",
        "created_at": "str",
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
        "result": "EmptyResult",
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
        "result": "EmptyResult",
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
        "result": "SuppressedResult",
        "created_at": "str",
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
        """Queue an e-mail. Content comes from a template (`template_id`) or from inline `html`. 202 means: on disk."""
        answer: PendingJob = self._call(
            "POST",
            "/v1/send/email",
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
        """The tenant's sending domains."""
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
        """One domain, with the records to publish for it."""
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
        from the domain once it is verified.
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
        """Queue a chat message. A template that the provider has approved, and the values of its positions. 202 means:
        on disk. 500 where neither the tenant nor the platform has credentials for the provider.
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

    def send_wallet(
        self,
        body: PassRequest,
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> PendingJob:
        """Queue a wallet pass. A pass costs 1 token, which is given back should the job fail. Keys of an Apple pass
        may be written as `auxiliary_fields` or as Apple does (`auxiliaryFields`, which wins where both are there);
        further keys of Apple's pass.json are taken in the same two spellings, unknown ones are refused. Images are
        PNGs in base64 or a data URL of at most 2 MiB each. With `template_id`, type, style and whatever the request
        leaves out come from the template; fields are merged by their key, text modules by their id, and where both
        say something the request wins. A Google pass is a generic one unless `class_type` says otherwise.
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
        job fail. Keys of an Apple pass may be written as `auxiliary_fields` or as Apple does (`auxiliaryFields`,
        which wins where both are there); further keys of Apple's pass.json are taken in the same two spellings,
        unknown ones are refused. Images are PNGs in base64 or a data URL of at most 2 MiB each. With `template_id`,
        type, style and whatever the request leaves out come from the template; fields are merged by their key, text
        modules by their id, and where both say something the request wins. A Google pass is an event ticket unless
        `class_type` says otherwise.
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
        modules by their `id`), every other key is replaced, null removes it; an empty image changes nothing. A
        field with `changeMessage` shows a banner, and so does `notify_message` for a Google pass. It costs nothing.
        Versions follow the order in which updates are accepted.
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
        """The file of an Apple pass."""
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
        """Whether a pass is valid, and on how many devices. A Google pass is looked up at Google each time."""
        answer: PassStatus = self._call(
            "GET",
            "/v1/passes/{id}/status",
            path_values={"id": id},
            repeat="safe",
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
        creates it or is the first to use it: no other can create, change or read it, or have passes of it.
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
        one; `venue` and `dateTime` are changed member by member. The class is submitted for review with every
        change (`reviewStatus` UNDER_REVIEW), but for a draft that is to stay one (DRAFT).
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
        class_type: Literal["generic", "eventTicket"],
        timeout: float | None = None,
    ) -> GoogleClass:
        """A class as Google holds it."""
        answer: GoogleClass = self._call(
            "GET",
            "/v1/google/classes/{id}",
            path_values={"id": id},
            query={"class_type": class_type},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def get_job(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> Job:
        """What became of a job."""
        answer: Job = self._call(
            "GET",
            "/v1/jobs/{id}",
            path_values={"id": id},
            repeat="safe",
            timeout=timeout,
        )
        return answer

    def get_job_events(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> JobEvents:
        """Delivery history of one job, oldest first."""
        answer: JobEvents = self._call(
            "GET",
            "/v1/jobs/{id}/events",
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
        Unknown parameters are refused.
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
