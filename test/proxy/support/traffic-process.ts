import { heldFake, httpUse, trafficWorld } from '../traffic-world.ts'

/** A data path as a process of its own, before the upstream at this port. Says its port, and its memory when it is asked. */
const use = httpUse(`http://127.0.0.1:${process.argv[2]}`)
const held = heldFake('api', [use])
const world = trafficWorld([held], { idleMs: 60_000 })
const site = await world.traffic.openSite(held, use)
console.log(new URL(site.url).port)
process.stdin.on('data', () => console.log(process.memoryUsage.rss()))
process.stdin.on('end', () => process.exit())
