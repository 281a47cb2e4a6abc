import { mkdir, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { eventually } from '../../support/app.ts'
import { run } from '../../support/run-program.ts'
import { startSshd } from '../../support/ssh-server.ts'
import { startNginx } from '../../support/tls-server.ts'
import type { StartUpstream } from '../backend-page.ts'

/** The page tells an sshd that trusts nobody of the authority. `www-data` is the user who runs the tests. */
export const ssh: StartUpstream = async ({ cwd, etc }) => {
  const own = join(cwd, 'sshd')
  await mkdir(own)
  await mkdir(join(etc, 'ssh'))
  await writeFile(join(etc, 'motd'), 'welcome\n')
  const server = await startSshd(own, [`Include ${etc}/ssh/sshd_config.d/*.conf`])
  const client = [
    ...['Host web-1.example.com', 'HostName 127.0.0.1', `Port ${server.port}`, 'BatchMode yes'],
    ...[`UserKnownHostsFile ${own}/known`, 'IdentitiesOnly yes', 'IdentityAgent none', ''],
  ]
  await writeFile(join(own, 'client'), client.join('\n'))
  const user = userInfo().username
  return {
    services: { ssh: server.reload },
    replace: [
      ['ssh -i key www-data@', `ssh -F ${own}/client -i key ${user}@`],
      ['principals/www-data', `principals/${user}`],
    ],
    async verify(results) {
      expect(results.find(({ command }) => command.includes('ssh -i key'))?.output).toContain('welcome\n')
      expect(server.logged()).toMatch(/Accepted publickey for \S+ .* ED25519-CERT .*cred_/)
    },
    stop: server.stop,
  }
}

/** The page tells an nginx that asks for no certificate of the authority. */
export const x509: StartUpstream = async ({ cwd, etc }) => {
  const own = join(cwd, 'nginx')
  await mkdir(own)
  await mkdir(join(etc, 'nginx/snippets'), { recursive: true })
  await writeFile(join(etc, 'nginx/snippets/mayfly.conf'), '')
  const server = await startNginx(own, `include ${etc}/nginx/snippets/mayfly.conf;`)
  const url = `https://localhost:${server.port}/`
  const path = `${process.env['PATH']}:/usr/sbin`
  const curl = (...args: string[]) =>
    run(
      ['curl', '-sS', '-i', '-4', '--cacert', join(own, 'server.crt'), ...args, url],
      { PATH: path },
      { cwd },
    )
  return {
    env: { CURL_CA_BUNDLE: join(own, 'server.crt') },
    programs: { nginx: `exec /usr/sbin/nginx -c ${own}/nginx.conf -e ${own}/error.log "$@"` },
    replace: [['https://api.example.com/', url]],
    verify: () =>
      // A reload takes a moment; until then the old workers ask for nothing.
      eventually(async () => {
        const [none, ours] = [await curl(), await curl('--cert', 'cert.pem', '--key', 'key.pem')]
        expect(none.stdout).toContain('400 Bad Request')
        expect(ours.stdout).toMatch(/x-verify: SUCCESS\s+x-subject: CN=worker/)
      }),
    stop: server.stop,
  }
}
