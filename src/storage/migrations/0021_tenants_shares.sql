ALTER TABLE "audit" ADD COLUMN "calls" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "tenants" ADD COLUMN "refund_day" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "tenants" ADD COLUMN "refunds" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "google_classes_by_tenant" ON "google_classes" USING btree ("tenant_id");