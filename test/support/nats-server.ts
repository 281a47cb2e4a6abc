import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeAccount, encodeOperator, encodeUser, fmtCreds } from '@nats-io/jwt'
import { createAccount, createOperator, createUser, type KeyPair } from '@nats-io/nkeys'
import { eventually } from './app.ts'
import { freePort } from './free-port.ts'

export interface NatsServer {
  readonly url: string
  /** Public key of the account, and the seeds of its own key and of a signing key. */
  readonly account: string
  readonly accountSeed: string
  readonly signingSeed: string
  /** A file of credentials for a user of the account who may do everything. */
  readonly superuser: Uint8Array
  stop(): Promise<void>
}

/** A server that trusts an operator, which vouches for one account and its signing key. */
export async function startNats(): Promise<NatsServer> {
  const directory = await mkdtemp(join(tmpdir(), 'mf-nats-'))
  const [operator, account, signer, user] = [createOperator(), createAccount(), createAccount(), createUser()]
  // JetStream needs one where operators are trusted.
  const system = createAccount()
  const systemJwt = await encodeAccount('SYS', system, {}, { signer: operator })
  const port = await freePort()
  const accountJwt = await encodeAccount(
    'shop',
    account,
    {
      signing_keys: [signer.getPublicKey()],
      limits: {
        subs: -1,
        conn: -1,
        data: -1,
        payload: -1,
        imports: -1,
        exports: -1,
        wildcards: true,
        leaf: -1,
        // JetStream.
        ...{ mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 },
      },
    },
    { signer: operator },
  )
  const config = `
listen: "127.0.0.1:${port}"
operator: ${await encodeOperator('test', operator)}
resolver: MEMORY
jetstream { store_dir: "${directory}" }
system_account: ${system.getPublicKey()}
resolver_preload: { ${account.getPublicKey()}: ${accountJwt}, ${system.getPublicKey()}: ${systemJwt} }
`
  const file = join(directory, 'nats.conf')
  await writeFile(file, config)
  // Debian installs servers in a directory that only root's PATH includes.
  const env = { PATH: `${process.env['PATH']}:/usr/sbin` }
  const child = spawn('nats-server', ['-c', file], { env, stdio: 'ignore' })
  child.on('error', () => undefined)
  const stop = async () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    }
    await rm(directory, { recursive: true, force: true })
  }
  try {
    await eventually(async () => {
      if (child.pid === undefined || child.exitCode !== null) throw new Error('nats-server has ended')
      const socket = connect(port, '127.0.0.1')
      await once(socket, 'connect').finally(() => socket.destroy())
    })
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url: `nats://127.0.0.1:${port}`,
    account: account.getPublicKey(),
    accountSeed: seedOf(account),
    signingSeed: seedOf(signer),
    superuser: fmtCreds(await encodeUser('superuser', user, account), user),
    stop,
  }
}

function seedOf(key: KeyPair): string {
  return new TextDecoder().decode(key.getSeed())
}
