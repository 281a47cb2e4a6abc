import { fillPostgres } from './postgres/fill.ts'
import { readCopy } from './sqlite/copy.ts'

/** Moves a checked copy into an empty PostgreSQL database. The copy is brought to the newest schema. */
export async function moveToPostgres(file: string, url: string): Promise<void> {
  await fillPostgres(url, readCopy(file))
}
