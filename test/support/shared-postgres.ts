import { SHARED_POSTGRES, startPostgres } from './postgres.ts'

/** One PostgreSQL for the whole run: the local one, or one from npm. Files that stop theirs start their own. */
export async function setup(): Promise<() => Promise<void>> {
  const server = await startPostgres()
  process.env[SHARED_POSTGRES] = server.url
  return server.stop
}
