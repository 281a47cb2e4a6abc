import pg from 'pg'
import { expect, it } from 'vitest'
import { describePostgresVersions } from '../support/describe-postgres.ts'
import { startPostgresVersion } from '../support/postgres-versions.ts'

describePostgresVersions((major) => {
  it('starts with the settings given, and keeps its data over a restart', async () => {
    const server = await startPostgresVersion(major, { max_prepared_transactions: 5 })
    try {
      expect([Math.floor(server.version / 10_000), server.asksPassword]).toEqual([major, true])
      const database = await server.createDatabase()
      await server.restart()
      const client = new pg.Client({ connectionString: database.url })
      await client.connect()
      const asked = ['max_prepared_transactions', 'fsync', 'password_encryption']
      const { rows } = await client.query(
        'SELECT array_agg(current_setting(name) ORDER BY ordinality) AS shown FROM unnest($1::text[]) WITH ORDINALITY AS s (name)',
        [asked],
      )
      expect(rows).toEqual([{ shown: ['5', 'on', 'scram-sha-256'] }])
      await client.end()
    } finally {
      await server.stop()
    }
  })
})
