import { setTimeout as pause } from 'node:timers/promises'
import { BARE_GROUP, type KindAgent, type KindWorld } from './world.ts'

/** A well-formed verifier of nobody's password; PostgreSQL compares it with that of an empty password. */
function verifierOf(iterations: number): string {
  const key = Buffer.alloc(32, 1).toString('base64')
  return `SCRAM-SHA-256$${iterations}:${Buffer.alloc(16, 2).toString('base64')}$${key}:${key}`
}

/** What the upstream must do for each credential. */
export function createBareRole(name: string, iterations: number, validUntil: Date): string {
  const until = validUntil.toISOString()
  return `CREATE ROLE ${name} LOGIN PASSWORD '${verifierOf(iterations)}' VALID UNTIL '${until}' IN ROLE ${BARE_GROUP}`
}

/** Statements of so many roles at once do not run out of locks. */
const AT_ONCE = 500

/** Roles `bare_1` to `bare_<count>`, quickly: nobody measures it. */
export async function addBareRoles(world: KindWorld, count: number): Promise<void> {
  for (let n = 1; n <= count; n += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - n + 1) }, (_, index) =>
      createBareRole(`bare_${n + index}`, 1, new Date(Date.now() + 3_600_000)),
    )
    await world.sql(some.join(';'))
  }
  await world.sql("SELECT setval('bare_next', 1, false)")
}

export async function dropBareRoles(world: KindWorld): Promise<void> {
  const { rows } = await world.sql("SELECT rolname FROM pg_authid WHERE rolname ~ '^bare_[0-9]+$'")
  for (let n = 0; n < rows.length; n += AT_ONCE) {
    const some = rows.slice(n, n + AT_ONCE).map((row) => row.rolname)
    await world.sql(`DROP ROLE ${some.join(', ')}`)
  }
  // Otherwise autovacuum does it at some time, perhaps in the next measurement.
  for (const catalogue of ['pg_authid', 'pg_auth_members']) await world.sql(`VACUUM ${catalogue}`)
}

const FILL = { warmMs: 0, burstMs: 500 }

/** Issues through Mayfly until at least `count` roles are new, and returns their names. */
export async function fill(world: KindWorld, agent: KindAgent, count: number): Promise<string[]> {
  const before = new Set(await world.roles())
  for (;;) {
    const made = (await world.roles()).filter((name) => !before.has(name))
    if (made.length >= count) return made
    await agent.issue(8, FILL)
  }
}

/** Resolves when the server has none of these roles any more. */
export async function areGone(world: KindWorld, names: readonly string[]): Promise<void> {
  for (;;) {
    const { rows } = await world.sql('SELECT count(*)::int AS left FROM pg_authid WHERE rolname = ANY ($1)', [
      names,
    ])
    if (rows[0]?.left === 0) return
    await pause(100)
  }
}
