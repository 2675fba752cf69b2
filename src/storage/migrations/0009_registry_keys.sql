CREATE TABLE "registry_keys" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"sealed" text NOT NULL
);
