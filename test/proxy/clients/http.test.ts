import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { run } from '../../support/run-program.ts'
import { BEARER, type ClientWorld, rules, startClientWorld } from '../support/client-world.ts'

const SECRET = 'tok_real_0123456789abcdefghij'
const API = 'https://api.acme.example'

/** Each sends one request with the token in `ACME_TOKEN` and writes the status: `PROGRAM METHOD URL`. */
const PYTHON = `
import os, sys, urllib.request, urllib.error
request = urllib.request.Request(sys.argv[2], method=sys.argv[1])
request.add_header('Authorization', 'Bearer ' + os.environ['ACME_TOKEN'])
try:
    with urllib.request.urlopen(request) as reply: print(reply.status, reply.read().decode())
except urllib.error.HTTPError as error: print(error.code, error.read().decode())
`
const REQUESTS = `
import os, sys, requests
reply = requests.request(sys.argv[1], sys.argv[2], headers={'Authorization': 'Bearer ' + os.environ['ACME_TOKEN']})
print(reply.status_code, reply.text)
`
/** What Google's libraries for Python are built on. */
const HTTPLIB2 = `
import os, sys, httplib2
reply, body = httplib2.Http().request(sys.argv[2], sys.argv[1], headers={'Authorization': 'Bearer ' + os.environ['ACME_TOKEN']})
print(reply.status, body.decode())
`
const NODE = `
const [, , method, url] = process.argv
const reply = await fetch(url, { method, headers: { authorization: 'Bearer ' + process.env.ACME_TOKEN } })
console.log(reply.status, await reply.text())
`
const GO = `package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	request, _ := http.NewRequest(os.Args[1], os.Args[2], nil)
	request.Header.Set("Authorization", "Bearer "+os.Getenv("ACME_TOKEN"))
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Println("failed", err)
		return
	}
	body, _ := io.ReadAll(reply.Body)
	fmt.Println(reply.StatusCode, string(body))
}
`

let world: ClientWorld
let site: string
const seen: string[] = []
const foreign: string[] = []
beforeAll(async () => {
  world = await startClientWorld(
    [
      {
        ...{ name: 'acme', type: 'acme', token: SECRET },
        uses: [
          {
            ...{ name: 'api', origin: API, places: BEARER, deny: [] },
            allow: rules('GET,POST /v1/**'),
          },
        ],
        env: ({ token }) => ({ ACME_TOKEN: token }),
      },
    ],
    {
      'api.acme.example': (request, response) => {
        seen.push(`${request.method} ${request.url} ${request.headers.authorization}`)
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ echo: request.headers.authorization }))
      },
      'elsewhere.example': (request, response) => {
        foreign.push(`${request.headers.authorization}`)
        response.end('elsewhere')
      },
    },
  )
  site = world.env['MAYFLY_URL_ACME_API'] ?? ''
  await writeFile(join(world.directory, 'get.py'), PYTHON)
  await writeFile(join(world.directory, 'get-requests.py'), REQUESTS)
  await writeFile(join(world.directory, 'get-httplib2.py'), HTTPLIB2)
  await writeFile(join(world.directory, 'get.mjs'), NODE)
  await writeFile(join(world.directory, 'get.go'), GO)
  const made = await run(
    ['go', 'build', '-o', 'get-go', 'get.go'],
    { ...process.env, GOFLAGS: '-mod=mod' } as never,
    {
      cwd: world.directory,
    },
  )
  if (made.code !== 0) throw new Error(made.stderr)
}, 120_000)
afterAll(() => world?.close())
beforeEach(() => {
  seen.length = 0
  foreign.length = 0
  world.misused.length = 0
})

const CLIENTS: Readonly<Record<string, readonly string[]>> = {
  curl: [
    'sh',
    '-c',
    'curl -sS -m 10 -X "$0" -w "\\n%{http_code}" -H "Authorization: Bearer $ACME_TOKEN" "$1" | tac',
  ],
  'net/http of Go': ['./get-go'],
  'urllib of Python': ['/usr/bin/python3', 'get.py'],
  'requests of Python': ['/usr/bin/python3', 'get-requests.py'],
  'httplib2 of Python': ['/usr/bin/python3', 'get-httplib2.py'],
  'fetch of Node': [process.execPath, 'get.mjs'],
}

describe.each(Object.entries(CLIENTS))('%s', (_, program) => {
  const ways = {
    'a base URL': (method: string, path: string) => world.run([...program, method, `${site}${path}`]),
    HTTPS_PROXY: (method: string, path: string) => world.runForward([...program, method, `${API}${path}`]),
  }

  describe.each(Object.entries(ways))('by %s', (_name, call) => {
    it('works with a placeholder, and does not see the secret that the upstream repeats', async () => {
      const { stdout, stderr } = await call('GET', '/v1/things?x=1')
      expect(stdout + stderr).toMatch(/^200\s*\{"echo":"Bearer [^t]+/)
      expect(stdout).not.toContain(SECRET)
      expect(seen).toEqual([`GET /v1/things?x=1 Bearer ${SECRET}`])
    })

    it('is refused another path and another method', async () => {
      expect((await call('GET', '/v2/things')).stdout).toMatch(/^403\s*.*proxy_path_not_allowed/)
      expect((await call('DELETE', '/v1/things')).stdout).toMatch(/^403\s*.*proxy_method_not_allowed/)
      expect(seen).toEqual([])
    })
  })

  it('is refused another authority, which is told', async () => {
    const { stdout } = await world.runForward([...program, 'GET', 'https://elsewhere.example/v1/things'])
    expect(stdout).toMatch(/^403\s*.*proxy_elsewhere/)
    expect(world.misused).toEqual(['acme'])
    expect(foreign).toEqual([])
  })
})

it('gives the child no secret', () => {
  expect(JSON.stringify(world.env)).not.toContain(SECRET)
})
