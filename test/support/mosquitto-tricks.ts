import type { Issued } from '../../src/backends/kind.ts'
import type { Hold, Tricks } from '../../src/plugin-sdk/testing/open-kind.ts'
import { type Login, publishes, subscribe } from './mosquitto-client.ts'
import type { MosquittoServer } from './mosquitto-server.ts'

const loginOf = ({ fields }: Issued) => fields as unknown as Login

/** What the holder of a client of Mosquitto may try. Another client, which may do all, sends and watches. */
export async function mosquittoTricks({ settings, control }: MosquittoServer): Promise<Tricks> {
  const other = { username: 'watcher', password: 'password-of-the-watcher' }
  await control('createClient', other.username, '-p', other.password)
  await control('addClientRole', other.username, 'admin')
  await control('addRoleACL', 'admin', 'publishClientSend', '#', 'allow')
  const { hostname, port } = new URL(settings.url.replace('mqtt', 'http'))
  const url = settings.url.replace('//', `//${other.username}:${other.password}@`)
  const watcher = { ...other, host: hostname, port: Number(port), url }
  const sessions = {
    'an open subscription': [],
    'a persistent session': ['-c', '-x', '600', '-q', '1'],
  }
  const subscriptions = Object.entries(sessions).map(([name, options]) => {
    const take = async (issued: Issued): Promise<Hold> => {
      const login = loginOf(issued)
      const id = `${login.username}-${options.length}`
      const open = subscribe(login, 'contract/a', '-i', id, ...options)
      if (!(await open.granted)) throw new Error(await open.ended)
      const receives = async () => {
        const next = open.next()
        if (!(await publishes(watcher, 'contract/a'))) throw new Error('the administrator cannot publish')
        return next
      }
      const resumes = () => subscribe(login, 'contract/a', '-i', id, ...options, '-E').granted
      return {
        works: async () => (await receives()) || (await resumes()),
        [Symbol.asyncDispose]: async () => open.close(),
      }
    }
    return [name, take] as const
  })
  return {
    ...Object.fromEntries(subscriptions),
    'logins in a loop': loginsInALoop,
    'a last will': (issued) => lastWill(issued, watcher),
  }
}

async function loginsInALoop(issued: Issued): Promise<Hold> {
  const login = loginOf(issued)
  let isOver = false
  const first = Promise.withResolvers<void>()
  const loop = async () => {
    while (!isOver) if (await publishes(login, 'contract/loop')) first.resolve()
  }
  const looping = Promise.all([loop(), loop()])
  await first.promise
  return {
    works: () => publishes(login, 'contract/loop'),
    async [Symbol.asyncDispose]() {
      isOver = true
      await looping
    },
  }
}

/** Works as long as its connection is there to break; after the end it must never have fired. */
async function lastWill(issued: Issued, watcher: Login): Promise<Hold> {
  const login = loginOf(issued)
  const topic = `contract/will/${login.username}`
  const seen = subscribe(watcher, `${topic}/#`)
  if (!(await seen.granted)) throw new Error(await seen.ended)
  let hasFired = false
  void seen.first.then((first) => {
    hasFired = first === topic
  })
  const will = ['--will-topic', topic, '--will-payload', 'left', '--will-qos', '1']
  const open = subscribe(login, 'contract/a', '-i', `${login.username}-will`, ...will)
  if (!(await open.granted)) throw new Error(await open.ended)
  return {
    async works() {
      // Until its end has reached the program, or what would fire has reached the watcher.
      const next = open.next()
      await publishes(watcher, 'contract/a')
      if (await next) return true
      const last = seen.next()
      await publishes(watcher, `${topic}/last`)
      await last
      return hasFired
    },
    async [Symbol.asyncDispose]() {
      open.close()
      seen.close()
    },
  }
}
