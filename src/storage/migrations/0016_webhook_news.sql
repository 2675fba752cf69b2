CREATE TABLE "webhook_news" (
	"tenant_id" text COLLATE "C" NOT NULL,
	"id" bigint NOT NULL,
	"key" text COLLATE "C" NOT NULL,
	"type" text COLLATE "C" NOT NULL,
	"channel" text COLLATE "C" NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"data" text NOT NULL,
	CONSTRAINT "webhook_news_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
ALTER TABLE "webhooks" ADD COLUMN "news_position" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "webhooks" ADD COLUMN "news_replay_after" bigint;--> statement-breakpoint
ALTER TABLE "webhooks" ADD COLUMN "news_replay_through" bigint;--> statement-breakpoint
ALTER TABLE "webhooks" ADD COLUMN "news_retry_through" bigint;--> statement-breakpoint
ALTER TABLE "webhook_news" ADD CONSTRAINT "webhook_news_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "webhook_news_by_key" ON "webhook_news" USING btree ("tenant_id","key");--> statement-breakpoint
CREATE INDEX "webhook_news_by_age" ON "webhook_news" USING btree ("id");