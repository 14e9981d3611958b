export { openDatabase, type Database, type DatabaseOptions } from './database.js';
export { Prisma, PrismaClient } from './generated/prisma/client.js';
