CREATE TABLE "pass_image_uses" (
	"pass_id" text COLLATE "C" NOT NULL,
	"tenant_id" text COLLATE "C" NOT NULL,
	"hash" text COLLATE "C" NOT NULL,
	CONSTRAINT "pass_image_uses_pass_id_hash_pk" PRIMARY KEY("pass_id","hash")
);
--> statement-breakpoint
ALTER TABLE "pass_image_uses" ADD CONSTRAINT "pass_image_uses_pass_id_passes_id_fk" FOREIGN KEY ("pass_id") REFERENCES "public"."passes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pass_image_uses" ADD CONSTRAINT "pass_image_uses_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pass_image_uses" ADD CONSTRAINT "pass_image_uses_tenant_id_hash_pass_images_tenant_id_hash_fk" FOREIGN KEY ("tenant_id","hash") REFERENCES "public"."pass_images"("tenant_id","hash") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "pass_image_uses_by_image" ON "pass_image_uses" USING btree ("tenant_id","hash");