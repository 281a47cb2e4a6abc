import { stringify } from 'yaml'
import { startWorld, type World } from '../cli/support.ts'
import { freePort } from '../support/free-port.ts'
import { startWorkloadIssuer, type WorkloadIssuer } from '../support/workload-issuer.ts'

export interface KeylessWorld extends World {
  readonly issuer: WorkloadIssuer
  /** Names of the agents that live, but for that of the world. */
  agents(): Promise<string[]>
}

export interface KeylessWish {
  readonly preset: Parameters<typeof startWorkloadIssuer>[0]
  readonly ofJob?: Readonly<Record<string, unknown>>
  /** Fields of the entry of `identities` beside issuer, audience and the name. */
  readonly entry: Readonly<Record<string, unknown>>
  /** Instead of the address of the server. */
  readonly audience?: string
}

/** A server that trusts a look-alike issuer for its own address, with the backend `demo`. */
export async function startKeylessWorld({
  preset,
  ofJob,
  entry,
  audience,
}: KeylessWish): Promise<KeylessWorld> {
  const issuer = await startWorkloadIssuer(preset, ofJob)
  const url = `http://127.0.0.1:${await freePort()}`
  const identity = { name: preset, issuer: issuer.url, local: true, audience: audience ?? url, ...entry }
  const world = await startWorld({
    jobs: true,
    argv: { listen: url.slice('http://'.length), issuer: url },
    yaml: stringify({ identities: [identity] }),
  })
  return {
    ...world,
    issuer,
    agents: async () => {
      const { body } = await world.app.admin('GET', '/v1/admin/agents')
      const names: string[] = body.map(({ name }: { name: string }) => name)
      return names.filter((name) => name !== world.agent.name).sort()
    },
    close: async () => {
      await world.close()
      await issuer.close()
    },
  }
}
