CREATE TABLE "aliases" (
	"tenant_id" text COLLATE "C" NOT NULL,
	"alias" text COLLATE "C" NOT NULL,
	"meta_name" text NOT NULL,
	"language_code" text,
	"params" text[] NOT NULL,
	"header" jsonb,
	CONSTRAINT "aliases_tenant_id_alias_pk" PRIMARY KEY("tenant_id","alias")
);
--> statement-breakpoint
CREATE TABLE "pass_devices" (
	"device_id" text COLLATE "C" NOT NULL,
	"pass_type_id" text COLLATE "C" NOT NULL,
	"push_token" text NOT NULL,
	CONSTRAINT "pass_devices_device_id_pass_type_id_pk" PRIMARY KEY("device_id","pass_type_id")
);
--> statement-breakpoint
CREATE TABLE "pass_images" (
	"tenant_id" text COLLATE "C" NOT NULL,
	"hash" text COLLATE "C" NOT NULL,
	"png" "bytea" NOT NULL,
	CONSTRAINT "pass_images_tenant_id_hash_pk" PRIMARY KEY("tenant_id","hash")
);
--> statement-breakpoint
CREATE TABLE "pass_registrations" (
	"device_id" text COLLATE "C" NOT NULL,
	"pass_id" text COLLATE "C" NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "pass_registrations_device_id_pass_id_pk" PRIMARY KEY("device_id","pass_id")
);
--> statement-breakpoint
CREATE TABLE "pass_types" (
	"pass_type_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"last_tag" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pass_versions" (
	"pass_id" text COLLATE "C" NOT NULL,
	"version" integer NOT NULL,
	"job_id" text NOT NULL,
	"notification_kind" text,
	"notify_message" text,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "pass_versions_pass_id_version_pk" PRIMARY KEY("pass_id","version")
);
--> statement-breakpoint
CREATE TABLE "passes" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"tenant_id" text COLLATE "C" NOT NULL,
	"type" text NOT NULL,
	"serial" text COLLATE "C" NOT NULL,
	"state" text NOT NULL,
	"version" integer NOT NULL,
	"content" jsonb NOT NULL,
	"pass_type_id" text COLLATE "C",
	"authentication_token" text,
	"job_id" text NOT NULL,
	"bundle" "bytea",
	"bundle_version" integer,
	"bundle_modified_at" bigint,
	"update_tag" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "tenants" ADD COLUMN "wallet_webhook_url" text;--> statement-breakpoint
ALTER TABLE "aliases" ADD CONSTRAINT "aliases_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pass_images" ADD CONSTRAINT "pass_images_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pass_registrations" ADD CONSTRAINT "pass_registrations_pass_id_passes_id_fk" FOREIGN KEY ("pass_id") REFERENCES "public"."passes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pass_versions" ADD CONSTRAINT "pass_versions_pass_id_passes_id_fk" FOREIGN KEY ("pass_id") REFERENCES "public"."passes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "passes" ADD CONSTRAINT "passes_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "pass_devices_by_token" ON "pass_devices" USING btree ("pass_type_id","push_token");--> statement-breakpoint
CREATE INDEX "registrations_by_pass" ON "pass_registrations" USING btree ("pass_id");--> statement-breakpoint
CREATE UNIQUE INDEX "passes_serial_once" ON "passes" USING btree ("tenant_id","type","serial") WHERE "passes"."state" <> 'failed';--> statement-breakpoint
CREATE UNIQUE INDEX "passes_by_job" ON "passes" USING btree ("job_id");--> statement-breakpoint
CREATE INDEX "passes_by_pass_type" ON "passes" USING btree ("pass_type_id","serial") WHERE "passes"."pass_type_id" is not null;--> statement-breakpoint
CREATE INDEX "passes_creating" ON "passes" USING btree ("created_at") WHERE "passes"."state" = 'creating';