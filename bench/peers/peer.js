// SPDX-License-Identifier: BSL-1.0
// A client of another lock library or server, measured as a peer of redlock: acquires and releases one lock in a loop.
//
//   node peer.js node-redlock|redis-semaphore <port of a master>...
//   node peer.js etcd <port>
//   node peer.js postgresql <port> <password file>
//
// Line protocol on stdin and stdout: once connected, prints `ready <name>: <configuration>`. Answers `run <pairs>` with
// `result <duration in ns> <failed acquires> <failed releases> <ns of each successful acquire>...`.
// On a fatal error, prints `failed <reason>` and exits.
'use strict';

const fs = require('node:fs');
const http = require('node:http');
const readline = require('node:readline');
const { performance } = require('node:perf_hooks');

const host = '127.0.0.1';
const ttl = 10_000; // In ms; the same as redlock's in this run.
const startupTimeout = 60_000; // In ms.
const retryInterval = 50; // In ms, between attempts to connect.

// ---- The kinds of peers: `name`, `about`, and `acquire`, which resolves to the release function --------------------

/// Loads an npm package that bench/run installed in this directory, with its version.
function installed(name) {
    try {
        return { code: require(name), version: require(`${name}/package.json`).version };
    } catch (problem) {
        if (problem.code !== 'MODULE_NOT_FOUND') {
            throw problem;
        }
        throw new Error(`the npm package '${name}' is not installed; run bench/run --peers to install it`);
    }
}

/// Opens one connection to each master with the defaults of ioredis.
async function connectToMasters(ports) {
    const { code: Redis, version } = installed('ioredis');
    const clients = ports.map((port) => new Redis({ host, port, lazyConnect: true }));
    await Promise.all(clients.map((client) => client.connect()));
    return { clients, with: `ioredis ${version}` };
}

async function nodeRedlock(...ports) {
    const { code: Redlock, version } = installed('redlock');
    const masters = await connectToMasters(ports);
    // The settings of its README.
    const settings = { driftFactor: 0.01, retryCount: 10, retryDelay: 200, retryJitter: 200 };
    const locks = new Redlock(masters.clients, settings);
    return {
        name: `node-redlock ${version}`,
        about: `npm redlock with ${masters.with}, on the same masters, settings of its README`,
        async acquire() {
            const lock = await locks.lock('lock:voucher:0', ttl);
            return () => lock.unlock();
        },
    };
}

async function redisSemaphore(...ports) {
    const { code, version } = installed('redis-semaphore');
    const masters = await connectToMasters(ports);
    return {
        name: `redis-semaphore ${version}`,
        about: `RedlockMutex of npm redis-semaphore with ${masters.with}, on the same masters, default settings`,
        async acquire() {
            const mutex = new code.RedlockMutex(masters.clients, 'voucher:0', { lockTimeout: ttl });
            await mutex.acquire();
            return () => mutex.release();
        },
    };
}

/// Sends JSON to etcd's gateway over a persistent connection.
function post(agent, port, path, body) {
    const text = JSON.stringify(body);
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
    return new Promise((resolve, reject) => {
        const request = http.request({ agent, host, port, path, headers, method: 'POST' }, (response) => {
            let answer = '';
            response.setEncoding('utf8');
            response.on('data', (part) => (answer += part));
            response.on('error', reject);
            response.on('end', () => {
                if (response.statusCode === 200) {
                    resolve(JSON.parse(answer));
                } else {
                    reject(new Error(`etcd answered ${path} with ${response.statusCode}: ${answer}`));
                }
            });
        });
        request.on('error', reject);
        request.end(text);
    });
}

async function etcd(port) {
    const agent = new http.Agent({ keepAlive: true, noDelay: true });
    const ask = (path, body) => post(agent, port, path, body);
    // As in its clients: a session has one lease, kept alive in the background, and the locks depend on it.
    const session = 60; // In seconds; the default of the Go client.
    const { ID: lease } = await ask('/v3/lease/grant', { TTL: session });
    const logError = (problem) => console.error(problem.message);
    setInterval(() => ask('/v3/lease/keepalive', { ID: lease }).catch(logError), (session * 1000) / 3);
    const version = await new Promise((resolve, reject) => {
        const read = (response) => response.on('data', (text) => resolve(JSON.parse(text).etcdserver));
        http.get({ host, port, path: '/version' }, read).on('error', reject);
    });
    const name = Buffer.from('lock/voucher/0').toString('base64');
    return {
        name: `etcd ${version}`,
        about: 'one node, which writes each change to disk; a lock with the lease of a session, through the JSON gateway',
        async acquire() {
            const { key } = await ask('/v3/lock/lock', { name, lease });
            return () => ask('/v3/lock/unlock', { key });
        },
    };
}

async function postgresql(port, passwordFile) {
    const { code: pg, version } = installed('pg');
    const password = fs.readFileSync(passwordFile, 'utf8').trim();
    const client = new pg.Client({ host, port, user: 'bench', database: 'postgres', password });
    client.on('error', (problem) => console.error(problem.message));
    await client.connect();
    const server = (await client.query('SHOW server_version')).rows[0].server_version.split(' ')[0];
    const values = [1];
    const lock = { name: 'lock', text: 'SELECT pg_advisory_lock($1)', values };
    const unlock = { name: 'unlock', text: 'SELECT pg_advisory_unlock($1) AS done', values };
    async function release() {
        if (!(await client.query(unlock)).rows[0].done) {
            throw new Error('PostgreSQL reports that the lock was not held');
        }
    }
    return {
        name: `PostgreSQL ${server}`,
        about: `advisory locks of one server, without a ttl, through prepared statements of npm pg ${version}`,
        async acquire() {
            await client.query(lock);
            return release;
        },
    };
}

const kinds = { 'node-redlock': nodeRedlock, 'redis-semaphore': redisSemaphore, etcd, postgresql };

// ---- The line protocol ---------------------------------------------------------------------------------------------

/// Retries while the server is starting.
async function connect(kind, addresses) {
    const until = performance.now() + startupTimeout;
    for (;;) {
        try {
            return await kinds[kind](...addresses);
        } catch (problem) {
            // 57P03: PostgreSQL is starting up.
            const early = problem.code === 'ECONNREFUSED' || problem.code === '57P03';
            if (!early || performance.now() > until) {
                throw problem;
            }
            await new Promise((resolve) => setTimeout(resolve, retryInterval));
        }
    }
}

const nanoseconds = (milliseconds) => Math.round(milliseconds * 1e6);

async function run(peer, pairs) {
    const acquires = [];
    const failed = { acquires: 0, releases: 0 };
    const began = performance.now();
    for (let pair = 0; pair < pairs; ++pair) {
        const asked = performance.now();
        let release;
        try {
            release = await peer.acquire();
        } catch (problem) {
            ++failed.acquires;
            console.error(problem.message);
            continue;
        }
        acquires.push(nanoseconds(performance.now() - asked));
        try {
            await release();
        } catch (problem) {
            ++failed.releases;
            console.error(problem.message);
        }
    }
    const duration = nanoseconds(performance.now() - began);
    return `result ${duration} ${failed.acquires} ${failed.releases} ${acquires.join(' ')}`;
}

const say = (line) => process.stdout.write(`${line}\n`);

async function main(kind, ...addresses) {
    const peer = await connect(kind, addresses);
    say(`ready ${peer.name}: ${peer.about}; Node.js ${process.versions.node}`);
    for await (const line of readline.createInterface({ input: process.stdin })) {
        say(await run(peer, Number(line.replace('run ', ''))));
    }
}

main(...process.argv.slice(2)).then(
    () => process.exit(0),
    (problem) => {
        say(`failed ${String(problem.message).replaceAll('\n', ' ')}`);
        process.exit(1);
    },
);
