import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { newHome, runCli, type World } from './support.ts'

export interface Home {
  home: string
  env: Record<string, string>
}

/** Somebody without a login, who knows the server. */
export async function newStranger(world: World): Promise<Home> {
  const { home, env } = await newHome()
  return { home, env: { ...env, MAYFLY_SERVER: world.url } }
}

export async function newLogin(world: World): Promise<Home> {
  const who = await newStranger(world)
  expect(await runCli(['login'], { env: who.env, stdin: world.agent.token })).toMatchObject({ code: 0 })
  return who
}

export const configOf = async ({ home }: Home) =>
  JSON.parse(await readFile(join(home, 'config/mayfly/config.json'), 'utf8'))

export const secretFile = ({ home }: Home, profile = 'default') =>
  join(home, `config/mayfly/secrets/${profile}.login.json`)
