CREATE TABLE "credentials" (
	"tenant_id" text COLLATE "C" NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"sealed" text NOT NULL,
	CONSTRAINT "credentials_tenant_id_kind_pk" PRIMARY KEY("tenant_id","kind")
);
--> statement-breakpoint
CREATE TABLE "keys" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"tenant_id" text COLLATE "C" NOT NULL,
	"hash" text NOT NULL,
	"prefix" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "keys_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "plans" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"requests_per_minute" integer NOT NULL,
	"deliveries_per_second" double precision
);
--> statement-breakpoint
CREATE TABLE "registry_state" (
	"id" smallint PRIMARY KEY NOT NULL,
	"shards" integer NOT NULL,
	"version" bigint NOT NULL,
	"plans_version" bigint NOT NULL,
	CONSTRAINT "registry_state_one_row" CHECK ("registry_state"."id" = 1)
);
--> statement-breakpoint
CREATE TABLE "suppressions" (
	"tenant_id" text COLLATE "C" NOT NULL,
	"address" text COLLATE "C" NOT NULL,
	"reason" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "suppressions_tenant_id_address_pk" PRIMARY KEY("tenant_id","address")
);
--> statement-breakpoint
CREATE TABLE "templates" (
	"tenant_id" text COLLATE "C" NOT NULL,
	"slug" text COLLATE "C" NOT NULL,
	"channel" text NOT NULL,
	"body" jsonb NOT NULL,
	CONSTRAINT "templates_tenant_id_slug_pk" PRIMARY KEY("tenant_id","slug")
);
--> statement-breakpoint
CREATE TABLE "tenants" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"plan" text COLLATE "C" NOT NULL,
	"channels" text[] NOT NULL,
	"permissions" text[] NOT NULL,
	"allow_custom" text[] NOT NULL,
	"tokens" bigint NOT NULL,
	"shard" integer NOT NULL,
	"version" bigint NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "tenants_tokens_not_negative" CHECK ("tenants"."tokens" >= 0)
);
--> statement-breakpoint
CREATE TABLE "token_movements" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"tenant_id" text COLLATE "C" NOT NULL,
	"kind" text NOT NULL,
	"amount" bigint NOT NULL,
	"reason" text NOT NULL,
	"job_id" text,
	"balance" bigint NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "credentials" ADD CONSTRAINT "credentials_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "keys" ADD CONSTRAINT "keys_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "suppressions" ADD CONSTRAINT "suppressions_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "templates" ADD CONSTRAINT "templates_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tenants" ADD CONSTRAINT "tenants_plan_plans_name_fk" FOREIGN KEY ("plan") REFERENCES "public"."plans"("name") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "token_movements" ADD CONSTRAINT "token_movements_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "keys_by_tenant" ON "keys" USING btree ("tenant_id");--> statement-breakpoint
CREATE INDEX "tenants_by_version" ON "tenants" USING btree ("version");--> statement-breakpoint
CREATE INDEX "token_movements_by_tenant" ON "token_movements" USING btree ("tenant_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "token_movements_once_a_job" ON "token_movements" USING btree ("job_id","kind") WHERE "token_movements"."job_id" is not null;