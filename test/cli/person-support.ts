import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { allow } from '../support/command.ts'
import type { Person } from '../support/person.ts'
import { type Home, newLogin } from './login-support.ts'
import { type CliEnd, type CliWish, runCli, type World } from './support.ts'

type Decide = typeof allow

/**
 * The person at the terminal and their browser: what the command shows, they decide on, and the browser goes where the page
 * sends it. `settled` rejects with what went wrong.
 */
export function decider(person: Person, decide: Decide = allow) {
  let shown = ''
  let done = Promise.resolve()
  const act = async (address: string | undefined, code: string | undefined) => {
    const reply = await decide(person, address === undefined ? { user_code: code } : { request: address })
    if (reply.status !== 200) throw new Error(`not decided: ${reply.text}`)
    if (reply.body.redirect_to !== undefined) await fetch(reply.body.redirect_to)
  }
  return {
    onSaid: (text: string) => {
      shown += text
      const [all, address, code] =
        /^(?:http\S+\/console\/allow\?(\S+)| {4}([A-Z0-9-]{9}))$/m.exec(shown) ?? []
      if (all === undefined) return
      shown = shown.slice(shown.indexOf(all) + all.length)
      done = done.then(() => act(address, code))
    },
    settled: () => done,
  }
}

/** One command line of somebody who decides on each login that it asks for. */
export async function runAs(
  person: Person,
  argv: readonly string[],
  wish: CliWish & { readonly decide?: Decide },
): Promise<CliEnd> {
  const { onSaid, settled } = decider(person, wish.decide)
  const end = await runCli(argv, { ...wish, onSaid })
  await settled()
  return end
}

/** Somebody with the login of an agent, who is also this person. */
export async function loggedInAsBoth(world: World, person: Person): Promise<Home> {
  const who = await newLogin(world)
  const end = await runAs(person, ['login', '--browser'], { env: who.env })
  if (end.code !== 0) throw new Error(`the login failed: ${end.stderr}`)
  return who
}

/** What is stored of the login of a person. */
export const operatorSecretOf = async ({ home }: Home) =>
  JSON.parse(await readFile(join(home, 'config/mayfly/secrets/default.operator.json'), 'utf8'))

export async function commandSessionsOf(
  { app }: World,
  { id }: Person,
): Promise<{ id: string; method: string }[]> {
  const { body } = await app.local.get(`/v1/admin/sessions?operator=${id}`)
  return body.filter(({ method }: { method: string }) => ['browser', 'device'].includes(method))
}

export const newestEntry = async ({ app }: World, action: string) =>
  (await app.local.get(`/v1/admin/audit?action=${action}&limit=1`)).body[0]
