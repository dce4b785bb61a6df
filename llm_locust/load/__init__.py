"""The load: users and their client, arrival schedules, stages and shapes, the gate that lets requests through."""
