CREATE TABLE "content_uses" (
	"job_id" text COLLATE "C" NOT NULL,
	"tenant_id" text COLLATE "C" NOT NULL,
	"sha256" text COLLATE "C" NOT NULL,
	CONSTRAINT "content_uses_job_id_sha256_pk" PRIMARY KEY("job_id","sha256")
);
--> statement-breakpoint
CREATE TABLE "contents" (
	"tenant_id" text COLLATE "C" NOT NULL,
	"sha256" text COLLATE "C" NOT NULL,
	"body" "bytea" NOT NULL,
	CONSTRAINT "contents_tenant_id_sha256_pk" PRIMARY KEY("tenant_id","sha256")
);
--> statement-breakpoint
ALTER TABLE "content_uses" ADD CONSTRAINT "content_uses_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "content_uses" ADD CONSTRAINT "content_uses_tenant_id_sha256_contents_tenant_id_sha256_fk" FOREIGN KEY ("tenant_id","sha256") REFERENCES "public"."contents"("tenant_id","sha256") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "contents" ADD CONSTRAINT "contents_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "content_uses_by_content" ON "content_uses" USING btree ("tenant_id","sha256");