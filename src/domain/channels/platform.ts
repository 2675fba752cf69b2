/**
 * The platform's own provider credentials, for tenants without credentials of their own. Each channel adds its members with
 * `declare module`. Null: none are configured.
 */
export interface PlatformCredentials {}
