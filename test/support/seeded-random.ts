export { SeededRandom } from "../../src/domain/seeded-random.ts";
