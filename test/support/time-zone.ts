/** The zone of servers and commands that tests start: not UTC, in which all times are told and stored, and not by whole hours. */
export const LOCAL_ZONE = "Asia/Kathmandu";
